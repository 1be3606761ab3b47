package framestorm;

import static framestorm.CryptoStubs.Calls.*;
import static framestorm.Internals.intrinsic;

import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.Base64;
import javax.crypto.spec.SecretKeySpec;

/**
 * C2's code calls the stubs that HotSpot has for digests, ciphers, big numbers, checksums and
 * encodings, one after the other. Each has enough to do to come by its loops, and no more. Which
 * ones there are depends on the JDK and the processor.
 */
final class CryptoStubs extends Scenario {
  @Override
  void prepare(Compiler compiler) throws Throwable {
    compiler.require(Compiler.C2); // others call Java methods
    call(); // links each call, as C2 needs it
    compiler.compileSeparately(Compiler.method(CryptoStubs.class, "call"), Compiler.C2);
    compiler.compileSeparately(Compiler.method(CryptoStubs.class, "loop"), Compiler.C2);
  }

  @Override
  void run() throws Throwable {
    loop();
  }

  private void loop() throws Throwable {
    enter();
    while (!Harness.stopped) {
      call();
    }
    leave();
  }

  private static void call() throws Throwable {
    // A call whose result is not cast to its type has another one.
    int r;
    int[] n;
    MD5.invokeExact(IN, 0);
    r = (int) MD5_BLOCKS.invokeExact(IN, 0, 144);
    SHA1.invokeExact(IN, 0);
    r = (int) SHA1_BLOCKS.invokeExact(IN, 0, 144);
    SHA256.invokeExact(IN, 0);
    r = (int) SHA256_BLOCKS.invokeExact(IN, 0, 144);
    SHA512.invokeExact(IN, 0);
    r = (int) SHA512_BLOCKS.invokeExact(IN, 0, 144);
    SHA3.invokeExact(IN, 0);
    r = (int) SHA3_BLOCKS.invokeExact(IN, 0, 144);
    r = (int) KECCAK.invokeExact(LONGS, OUT_LONGS);
    AES_ENCRYPT.invokeExact(IN, 0, OUT, 0);
    AES_DECRYPT.invokeExact(IN, 0, OUT, 0);
    r = (int) CBC_ENCRYPT.invokeExact(IN, 0, BLOCKS, OUT, 0);
    r = (int) CBC_DECRYPT.invokeExact(IN, 0, BLOCKS, OUT, 0);
    r = (int) CTR.invokeExact(IN, 0, BLOCKS, OUT, 0);
    GHASH.invokeExact(IN, 0, 9, OUT_LONGS, LONGS);
    r = (int) CHACHA20.invokeExact(INTS, OUT);
    POLY1305.invokeExact(IN, 0, 1024, OUT_LONGS, LONGS);
    r = (int) KYBER_NTT.invokeExact(SHORTS, ZETAS_OF_KEM);
    r = (int) KYBER_INVERSE_NTT.invokeExact(SHORTS, ZETAS_OF_KEM);
    r = (int) KYBER_MULTIPLY.invokeExact(SHORTS, SHORTS, SHORTS, ZETAS_OF_KEM);
    r = (int) KYBER_ADD.invokeExact(SHORTS, SHORTS, SHORTS);
    r = (int) KYBER_ADD_3.invokeExact(SHORTS, SHORTS, SHORTS, SHORTS);
    r = (int) KYBER_12_TO_16.invokeExact(IN, 0, SHORTS, COEFFICIENTS / 2);
    r = (int) KYBER_REDUCE.invokeExact(SHORTS);
    r = (int) DILITHIUM_NTT.invokeExact(INTS, ZETAS_OF_DSA);
    r = (int) DILITHIUM_INVERSE_NTT.invokeExact(INTS, ZETAS_OF_DSA);
    r = (int) DILITHIUM_MULTIPLY.invokeExact(INTS, INTS, INTS);
    r = (int) DILITHIUM_BY_CONSTANT.invokeExact(INTS, 7);
    r = (int) DILITHIUM_DECOMPOSE.invokeExact(INTS, INTS, OUT_INTS, 190_464, 11_275);
    n = (int[]) MULTIPLY.invokeExact(NUMBER, 7, NUMBER, 6, OUT_INTS);
    n = (int[]) SQUARE.invokeExact(NUMBER, 8, OUT_INTS, 16);
    r = (int) MULTIPLY_ADD.invokeExact(OUT_INTS, NUMBER, 4, 8, 0x1234_5678);
    n = (int[]) MONTGOMERY_MULTIPLY.invokeExact(NUMBER, NUMBER, ODD, 4, -1L, OUT_INTS);
    n = (int[]) MONTGOMERY_SQUARE.invokeExact(NUMBER, ODD, 4, -1L, OUT_INTS);
    SHIFT_LEFT.invokeExact(OUT_INTS, NUMBER, 0, 5, 41);
    SHIFT_RIGHT.invokeExact(OUT_INTS, NUMBER, 0, 5, 41);
    P256_MULTIPLY.invokeExact(LIMBS, LIMBS, OUT_LIMBS);
    ASSIGN.invokeExact(1, LIMBS, OUT_LIMBS);
    ENCODE.invokeExact(IN, 0, PLAIN, OUT, 0, false);
    r = (int) DECODE.invokeExact(ENCODED, 0, ENCODED.length, OUT, 0, false, false);
    r = (int) DECODE_OF_EARLY_17.invokeExact(ENCODED, 0, ENCODED.length, OUT, 0, false);
    r = (int) CRC32.invokeExact(0, IN, 1, 600);
    r = (int) CRC32C.invokeExact(0, IN, 1, 30_000);
    r = (int) ADLER32.invokeExact(1, IN, 1, 600);
    r = (int) MISMATCH.invokeExact((Object) IN, 16L, (Object) OTHER, 16L, PLAIN, 0);
    // HotSpot says that it has stubs for these where the processor is without what they need, too.
    // Then the methods run for long, interpreted: they come last.
    r = (int) GCM.invokeExact(IN, 0, 4 * BLOCKS, OUT, 0, OUT, 0);
    r = (int) ECB_ENCRYPT.invokeExact(IN, 0, BLOCKS, OUT, 0);
    r = (int) ECB_DECRYPT.invokeExact(IN, 0, BLOCKS, OUT, 0);
  }

  /**
   * Each is called with exactly its own type: for a handle that is converted, or bound to more than
   * its object, the JDK generates classes, which takes most of a start of the JVM.
   */
  static final class Calls {
    private static final String CIPHERS = "com.sun.crypto.provider.";
    private static final String DIGESTS = "sun.security.provider.";
    private static final String BIG = "java.math.BigInteger";
    private static final String FIELDS = "sun.security.util.math.intpoly.";
    private static final String P256 = FIELDS + "MontgomeryIntegerPolynomialP256";
    // JDK 26 has another one.
    private static final String AES =
        CIPHERS + (Internals.exists(CIPHERS + "AES_Crypt") ? "AES_Crypt" : "AESCrypt");
    private static final byte[] KEY = new byte[16];

    // The arguments are those that the JDK's own callers may pass, with arrays of any content.
    static final byte[] IN = new byte[32 * 1024];
    static final byte[] OTHER = IN.clone();
    static final byte[] OUT = new byte[32 * 1024];
    // Sixteen blocks of AES at once, then eight, four, two, and one: the stubs' loops.
    static final int BLOCKS = (16 + 8 + 4 + 2 + 1) * 16;
    static final int PLAIN = 300;
    static final byte[] ENCODED = Base64.getEncoder().encode(new byte[PLAIN]);
    static final long[] LONGS = new long[128];
    static final long[] OUT_LONGS = new long[128];
    static final long[] LIMBS = new long[10];
    static final long[] OUT_LIMBS = new long[10];
    static final int COEFFICIENTS = 256;
    // Of ML-KEM and ML-DSA.
    static final short[] SHORTS = new short[COEFFICIENTS];
    static final short[] ZETAS_OF_KEM = new short[16 * COEFFICIENTS];
    static final int[] INTS = new int[COEFFICIENTS];
    static final int[] OUT_INTS = new int[COEFFICIENTS];
    static final int[] ZETAS_OF_DSA = new int[16 * COEFFICIENTS];
    static final int[] NUMBER = new int[48];
    // Of its last 64 bits the inverse is -1, which a debug build of HotSpot checks.
    static final int[] ODD = {0x89ab_cdef, 0, 0, 1};

    static {
      Arrays.fill(NUMBER, 0x89ab_cdef);
    }

    static final MethodHandle MD5 = digest("MD5", "MD5");
    static final MethodHandle MD5_BLOCKS = blocks("MD5", "MD5");
    static final MethodHandle SHA1 = digest("SHA", "SHA");
    static final MethodHandle SHA1_BLOCKS = blocks("SHA", "SHA");
    static final MethodHandle SHA256 = digest("SHA2", "SHA2$SHA256");
    static final MethodHandle SHA256_BLOCKS = blocks("SHA2", "SHA2$SHA256");
    static final MethodHandle SHA512 = digest("SHA5", "SHA5$SHA512");
    static final MethodHandle SHA512_BLOCKS = blocks("SHA5", "SHA5$SHA512");
    static final MethodHandle SHA3 = digest("SHA3", "SHA3$SHA256");
    static final MethodHandle SHA3_BLOCKS = blocks("SHA3", "SHA3$SHA256");
    static final MethodHandle KECCAK =
        intrinsic(DIGESTS + "SHA3Parallel", "doubleKeccak", "([J[J)I");
    static final MethodHandle AES_ENCRYPT = aes("implEncryptBlock", false);
    static final MethodHandle AES_DECRYPT = aes("implDecryptBlock", true);
    static final MethodHandle CBC_ENCRYPT = chained("CipherBlockChaining", "implEncrypt", false);
    static final MethodHandle CBC_DECRYPT = chained("CipherBlockChaining", "implDecrypt", true);
    static final MethodHandle CTR = chained("CounterMode", "implCrypt", false);
    static final MethodHandle GHASH = intrinsic(CIPHERS + "GHASH", "processBlocks", "([BII[J[J)V");
    static final MethodHandle CHACHA20 =
        intrinsic(CIPHERS + "ChaCha20Cipher", "implChaCha20Block", "([I[B)I");
    static final MethodHandle POLY1305 =
        intrinsic(CIPHERS + "Poly1305", "processMultipleBlocks", "([BII[J[J)V", poly1305());
    static final MethodHandle KYBER_NTT = intrinsic(CIPHERS + "ML_KEM", "implKyberNtt", "([S[S)I");
    static final MethodHandle KYBER_INVERSE_NTT =
        intrinsic(CIPHERS + "ML_KEM", "implKyberInverseNtt", "([S[S)I");
    static final MethodHandle KYBER_MULTIPLY =
        intrinsic(CIPHERS + "ML_KEM", "implKyberNttMult", "([S[S[S[S)I");
    static final MethodHandle KYBER_ADD =
        intrinsic(CIPHERS + "ML_KEM", "implKyberAddPoly", "([S[S[S)I");
    static final MethodHandle KYBER_ADD_3 =
        intrinsic(CIPHERS + "ML_KEM", "implKyberAddPoly", "([S[S[S[S)I");
    static final MethodHandle KYBER_12_TO_16 =
        intrinsic(CIPHERS + "ML_KEM", "implKyber12To16", "([BI[SI)I");
    static final MethodHandle KYBER_REDUCE =
        intrinsic(CIPHERS + "ML_KEM", "implKyberBarrettReduce", "([S)I");
    static final MethodHandle DILITHIUM_NTT =
        intrinsic(DIGESTS + "ML_DSA", "implDilithiumAlmostNtt", "([I[I)I");
    static final MethodHandle DILITHIUM_INVERSE_NTT =
        intrinsic(DIGESTS + "ML_DSA", "implDilithiumAlmostInverseNtt", "([I[I)I");
    static final MethodHandle DILITHIUM_MULTIPLY =
        intrinsic(DIGESTS + "ML_DSA", "implDilithiumNttMult", "([I[I[I)I");
    static final MethodHandle DILITHIUM_BY_CONSTANT =
        intrinsic(DIGESTS + "ML_DSA", "implDilithiumMontMulByConstant", "([II)I");
    static final MethodHandle DILITHIUM_DECOMPOSE =
        intrinsic(DIGESTS + "ML_DSA", "implDilithiumDecomposePoly", "([I[I[III)I");
    static final MethodHandle MULTIPLY = intrinsic(BIG, "implMultiplyToLen", "([II[II[I)[I");
    static final MethodHandle SQUARE = intrinsic(BIG, "implSquareToLen", "([II[II)[I");
    static final MethodHandle MULTIPLY_ADD = intrinsic(BIG, "implMulAdd", "([I[IIII)I");
    static final MethodHandle MONTGOMERY_MULTIPLY =
        intrinsic(BIG, "implMontgomeryMultiply", "([I[I[IIJ[I)[I");
    static final MethodHandle MONTGOMERY_SQUARE =
        intrinsic(BIG, "implMontgomerySquare", "([I[IIJ[I)[I");
    static final MethodHandle SHIFT_LEFT = intrinsic(BIG, "shiftLeftImplWorker", "([I[IIII)V");
    static final MethodHandle SHIFT_RIGHT = intrinsic(BIG, "shiftRightImplWorker", "([I[IIII)V");
    static final MethodHandle P256_MULTIPLY =
        intrinsic(P256, "mult", "([J[J[J)V", Internals.make(P256));
    static final MethodHandle ASSIGN =
        intrinsic(FIELDS + "IntegerPolynomial", "conditionalAssign", "(I[J[J)V");
    static final MethodHandle ENCODE =
        intrinsic("java.util.Base64$Encoder", "encodeBlock", "([BII[BIZ)V", Base64.getEncoder());
    static final MethodHandle DECODE =
        intrinsic("java.util.Base64$Decoder", "decodeBlock", "([BII[BIZZ)I", Base64.getDecoder());
    static final MethodHandle DECODE_OF_EARLY_17 =
        intrinsic("java.util.Base64$Decoder", "decodeBlock", "([BII[BIZ)I", Base64.getDecoder());
    static final MethodHandle CRC32 = intrinsic("java.util.zip.CRC32", "updateBytes0", "(I[BII)I");
    static final MethodHandle CRC32C = intrinsic("java.util.zip.CRC32C", "updateBytes", "(I[BII)I");
    static final MethodHandle ADLER32 =
        intrinsic("java.util.zip.Adler32", "updateBytes", "(I[BII)I");
    static final MethodHandle MISMATCH =
        intrinsic(
            "jdk.internal.util.ArraysSupport",
            "vectorizedMismatch",
            "(Ljava/lang/Object;JLjava/lang/Object;JII)I");
    static final MethodHandle GCM = gcm();
    static final MethodHandle ECB_ENCRYPT = chained("ElectronicCodeBook", "implECBEncrypt", false);
    static final MethodHandle ECB_DECRYPT = chained("ElectronicCodeBook", "implECBDecrypt", true);

    private static MethodHandle digest(String holder, String name) {
      return intrinsic(DIGESTS + holder, "implCompress0", "([BI)V", Internals.make(DIGESTS + name));
    }

    /** HotSpot says that it has these, if it has any digest's. */
    private static MethodHandle blocks(String holder, String name) {
      String base = DIGESTS + "DigestBase";
      return Internals.isIntrinsic(DIGESTS + holder, "implCompress0")
          ? intrinsic(base, "implCompressMultiBlock0", "([BII)I", Internals.make(DIGESTS + name))
          : Internals.nothing("([BII)I");
    }

    private static MethodHandle aes(String name, boolean decrypts) {
      return intrinsic(AES, name, "([BI[BI)V", block(decrypts));
    }

    private static MethodHandle chained(String mode, String name, boolean decrypts) {
      Object cipher = Internals.make(CIPHERS + mode, block(decrypts));
      byte[] iv = mode.equals("ElectronicCodeBook") ? null : new byte[KEY.length];
      Internals.call(cipher, "init", decrypts, "AES", KEY, iv);
      return intrinsic(CIPHERS + mode, name, "([BII[BI)I", cipher);
    }

    private static MethodHandle gcm() {
      Object gctr = Internals.make(CIPHERS + "GCTR", block(false), new byte[KEY.length]);
      Object ghash = Internals.make(CIPHERS + "GHASH", (Object) KEY);
      return intrinsic(
          CIPHERS + "GaloisCounterMode", "implGCMCrypt0", "([BII[BI[BI)I", gctr, ghash);
    }

    private static Object block(boolean decrypts) {
      Object cipher = Internals.make(AES);
      Internals.call(cipher, "init", decrypts, "AES", KEY);
      return cipher;
    }

    private static Object poly1305() {
      Object made = Internals.make(CIPHERS + "Poly1305");
      byte[] key = new byte[32];
      Arrays.fill(key, (byte) 1); // zeros are refused
      Internals.call(made, "engineInit", new SecretKeySpec(key, "Poly1305"), null);
      return made;
    }
  }
}
