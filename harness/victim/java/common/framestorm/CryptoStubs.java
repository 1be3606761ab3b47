package framestorm;

import static framestorm.Internals.intrinsic;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MutableCallSite;
import java.util.Arrays;
import java.util.Base64;

/**
 * C2's code calls the stubs that HotSpot has for digests, ciphers, big numbers, checksums and
 * encodings, one after the other. Each has enough to do to come by its loops, and no more. Which
 * ones there are depends on the JDK and the processor.
 */
final class CryptoStubs extends Scenario {
  private static final MutableCallSite CALLS = new MutableCallSite(Internals.all());
  private static final MethodHandle CALL = CALLS.dynamicInvoker();

  private static boolean prepared;

  @Override
  void prepare(Compiler compiler) throws Throwable {
    compiler.require(Compiler.C2); // others call Java methods
    if (!prepared) {
      call(); // links the call, as C2 needs it, while there is nothing to be called
      CALLS.setTarget(Calls.all());
      prepared = true;
    }
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
    CALL.invokeExact();
  }

  /** The arguments are those that the JDK's own callers may pass, with arrays of any content. */
  private static final class Calls {
    private static final String CIPHERS = "com.sun.crypto.provider.";
    private static final String DIGESTS = "sun.security.provider.";
    // JDK 26 has another one.
    private static final String AES =
        CIPHERS + (Internals.exists(CIPHERS + "AES_Crypt") ? "AES_Crypt" : "AESCrypt");
    private static final byte[] IN = new byte[32 * 1024];
    private static final byte[] OUT = new byte[32 * 1024];
    private static final byte[] KEY = new byte[16];
    // Sixteen blocks of AES at once, then eight, four, two, and one: the stubs' loops.
    private static final int BLOCKS = (16 + 8 + 4 + 2 + 1) * 16;
    private static final int COEFFICIENTS = 256;

    static MethodHandle all() throws Throwable {
      return Internals.all(
          digests(), aes(), streams(), lattices(), numbers(), encodings(), aesOfSomeProcessors());
    }

    private static MethodHandle digests() throws Throwable {
      return Internals.all(
          digest("MD5", "MD5"),
          digest("SHA", "SHA"),
          digest("SHA2", "SHA2$SHA256"),
          digest("SHA5", "SHA5$SHA512"),
          digest("SHA3", "SHA3$SHA256"),
          intrinsic(DIGESTS + "SHA3Parallel", "doubleKeccak", new long[25], new long[25]));
    }

    // Of one block, and of two.
    private static MethodHandle digest(String holder, String name) throws Throwable {
      Object made = Internals.make(DIGESTS + name);
      MethodHandle one = intrinsic(DIGESTS + holder, "implCompress0", made, IN, 0);
      return Internals.isNothing(one)
          ? one
          : Internals.all(
              one, intrinsic(DIGESTS + "DigestBase", "implCompressMultiBlock0", made, IN, 0, 144));
    }

    private static MethodHandle aes() throws Throwable {
      return Internals.all(
          intrinsic(AES, "implEncryptBlock", block(false), IN, 0, OUT, 0),
          intrinsic(AES, "implDecryptBlock", block(true), IN, 0, OUT, 0),
          chained("CipherBlockChaining", "implEncrypt", false),
          chained("CipherBlockChaining", "implDecrypt", true),
          chained("CounterMode", "implCrypt", false),
          intrinsic(CIPHERS + "GHASH", "processBlocks", IN, 0, 9, new long[2], new long[128]));
    }

    // HotSpot says that it has stubs for these where the processor is without what they need, too.
    // Then the methods run for long, interpreted: they come last.
    private static MethodHandle aesOfSomeProcessors() throws Throwable {
      Object gctr = Internals.make(CIPHERS + "GCTR", block(false), new byte[KEY.length]);
      Object ghash = Internals.make(CIPHERS + "GHASH", (Object) KEY);
      return Internals.all(
          intrinsic(
              CIPHERS + "GaloisCounterMode",
              "implGCMCrypt0",
              IN, 0, 4 * BLOCKS, OUT, 0, OUT, 0, gctr, ghash),
          chained("ElectronicCodeBook", "implECBEncrypt", false),
          chained("ElectronicCodeBook", "implECBDecrypt", true));
    }

    private static MethodHandle chained(String mode, String name, boolean decrypts)
        throws Throwable {
      Object cipher = Internals.make(CIPHERS + mode, block(decrypts));
      Internals.call(cipher, "init", decrypts, "AES", KEY, ivOf(mode));
      return intrinsic(CIPHERS + mode, name, cipher, IN, 0, BLOCKS, OUT, 0);
    }

    private static byte[] ivOf(String mode) {
      return mode.equals("ElectronicCodeBook") ? null : new byte[KEY.length];
    }

    private static Object block(boolean decrypts) throws Throwable {
      Object cipher = Internals.make(AES);
      Internals.call(cipher, "init", decrypts, "AES", KEY);
      return cipher;
    }

    private static MethodHandle streams() throws Throwable {
      Object poly1305 = Internals.make(CIPHERS + "Poly1305");
      return Internals.all(
          intrinsic(CIPHERS + "ChaCha20Cipher", "implChaCha20Block", new int[16], OUT),
          intrinsic(
              CIPHERS + "Poly1305",
              "processMultipleBlocks",
              poly1305, IN, 0, 1024, new long[5], new long[5]));
    }

    // ML-KEM and ML-DSA.
    private static MethodHandle lattices() throws Throwable {
      String kem = CIPHERS + "ML_KEM";
      String dsa = DIGESTS + "ML_DSA";
      short[] a = new short[COEFFICIENTS];
      short[] zetas = new short[16 * COEFFICIENTS];
      int[] p = new int[COEFFICIENTS];
      int[] low = new int[COEFFICIENTS];
      int[] zetasOfDsa = new int[16 * COEFFICIENTS];
      return Internals.all(
          intrinsic(kem, "implKyberNtt", a, zetas),
          intrinsic(kem, "implKyberInverseNtt", a, zetas),
          intrinsic(kem, "implKyberNttMult", a, a, a, zetas),
          intrinsic(kem, "implKyberAddPoly", a, a, a),
          intrinsic(kem, "implKyberAddPoly", a, a, a, a),
          intrinsic(kem, "implKyber12To16", IN, 0, a, COEFFICIENTS / 2),
          intrinsic(kem, "implKyberBarrettReduce", (Object) a),
          intrinsic(dsa, "implDilithiumAlmostNtt", p, zetasOfDsa),
          intrinsic(dsa, "implDilithiumAlmostInverseNtt", p, zetasOfDsa),
          intrinsic(dsa, "implDilithiumNttMult", p, p, p),
          intrinsic(dsa, "implDilithiumMontMulByConstant", p, 7),
          intrinsic(dsa, "implDilithiumDecomposePoly", p, p, low, 190_464, 11_275));
    }

    private static MethodHandle numbers() throws Throwable {
      String big = "java.math.BigInteger";
      String fields = "sun.security.util.math.intpoly.";
      Object p256 = Internals.make(fields + "MontgomeryIntegerPolynomialP256");
      int[] x = new int[48];
      Arrays.fill(x, 0x89ab_cdef);
      long[] limbs = new long[10];
      // Of its last 64 bits the inverse is -1, which a debug build of HotSpot checks.
      int[] odd = {0x89ab_cdef, 0, 0, 1};
      return Internals.all(
          intrinsic(big, "implMultiplyToLen", x, 7, x, 6, new int[16]),
          intrinsic(big, "implSquareToLen", x, 8, new int[16], 16),
          intrinsic(big, "implMulAdd", new int[16], x, 4, 8, 0x1234_5678),
          intrinsic(big, "implMontgomeryMultiply", x, x, odd, 4, -1L, new int[8]),
          intrinsic(big, "implMontgomerySquare", x, odd, 4, -1L, new int[8]),
          intrinsic(big, "shiftLeftImplWorker", new int[48], x, 0, 5, 41),
          intrinsic(big, "shiftRightImplWorker", new int[48], x, 0, 5, 41),
          intrinsic(
              fields + "MontgomeryIntegerPolynomialP256",
              "mult",
              p256, limbs, limbs, new long[10]),
          intrinsic(
              fields + "IntegerPolynomial", "conditionalAssign", 1, limbs, new long[10]));
    }

    private static MethodHandle encodings() throws Throwable {
      String encoder = "java.util.Base64$Encoder";
      String decoder = "java.util.Base64$Decoder";
      int length = 300;
      byte[] encoded = Base64.getEncoder().encode(Arrays.copyOf(IN, length));
      Base64.Decoder own = Base64.getDecoder();
      int to = encoded.length;
      return Internals.all(
          intrinsic(
              encoder, "encodeBlock", Base64.getEncoder(), IN, 0, length, OUT, 0, false),
          intrinsic(decoder, "decodeBlock", own, encoded, 0, to, OUT, 0, false),
          intrinsic(decoder, "decodeBlock", own, encoded, 0, to, OUT, 0, false, false),
          intrinsic("java.util.zip.CRC32", "updateBytes0", 0, IN, 1, 600),
          intrinsic("java.util.zip.CRC32C", "updateBytes", 0, IN, 1, 30_000),
          intrinsic("java.util.zip.Adler32", "updateBytes", 1, IN, 1, 600),
          intrinsic(
              "jdk.internal.util.ArraysSupport",
              "vectorizedMismatch",
              IN, 16L, IN.clone(), 16L, length, 0));
    }
  }
}
