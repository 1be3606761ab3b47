package framestorm.workloads;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.spec.AlgorithmParameterSpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;
import java.util.zip.Checksum;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import javax.management.JMException;

/**
 * Methods around calls that C2 replaces by stubs and machine code of its own. That C2 has compiled
 * them is the proof: intrinsics are used from there on.
 */
final class Intrinsics extends Workload {
  private static final int BYTES = 16 << 10;
  private static final int KINDS = 8;
  private static final int CALLS = 60;
  private static final int LEAST_COMPILED = 3;
  private static final String[] DIGESTS = {"MD5", "SHA-1", "SHA-256", "SHA-512", "SHA3-256"};
  private static final String[] CIPHERS = {
    "AES/CBC/NoPadding", "AES/CTR/NoPadding", "AES/GCM/NoPadding"
  };

  private final ThreadLocal<byte[]> data = ThreadLocal.withInitial(() -> new byte[BYTES]);
  private volatile long sink;

  @Override
  void iterate(Worker worker) throws GeneralSecurityException {
    byte[] bytes = data.get();
    bytes[worker.random().nextInt(BYTES)]++;
    long sum = 0;
    for (int kind = 0; kind < KINDS; kind++) {
      for (int i = 0; i < CALLS; i++) {
        sum += kernel(kind, bytes, i);
      }
    }
    worker.count("calls", KINDS * CALLS);
    sink = sum;
  }

  private static long kernel(int kind, byte[] bytes, int i) throws GeneralSecurityException {
    return switch (kind) {
      case 0 -> copies(bytes, i);
      case 1 -> checksums(bytes, i);
      case 2 -> digests(bytes, i);
      case 3 -> ciphers(bytes, i);
      case 4 -> strings(bytes, i);
      case 5 -> bigNumbers(bytes, i);
      case 6 -> mathematics(bytes, i);
      default -> arrays(bytes, i);
    };
  }

  private static long copies(byte[] bytes, int i) {
    Object[] objects = new Object[1_000];
    System.arraycopy(bytes, i, bytes, 200 - i, 5_000 + i);
    System.arraycopy(objects, i, objects, 0, 500);
    return Arrays.copyOf(bytes, 100 + i).length + objects.clone().length;
  }

  private static long checksums(byte[] bytes, int i) {
    long sum = 0;
    for (Checksum checksum : new Checksum[] {new CRC32(), new CRC32C(), new Adler32()}) {
      checksum.update(bytes, i, 8_000);
      sum += checksum.getValue();
    }
    return sum;
  }

  private static long digests(byte[] bytes, int i) throws GeneralSecurityException {
    MessageDigest digest = MessageDigest.getInstance(DIGESTS[i % DIGESTS.length]);
    digest.update(bytes, i, 8_000);
    return digest.digest()[0];
  }

  private static long ciphers(byte[] bytes, int i) throws GeneralSecurityException {
    int which = i % (CIPHERS.length + 1);
    boolean chacha = which == CIPHERS.length;
    Cipher cipher = Cipher.getInstance(chacha ? "ChaCha20-Poly1305" : CIPHERS[which]);
    byte[] nonce = Arrays.copyOf(bytes, 12);
    nonce[0] = (byte) i;
    AlgorithmParameterSpec parameters =
        chacha
            ? new IvParameterSpec(nonce)
            : which == 2 ? new GCMParameterSpec(128, nonce) : new IvParameterSpec(bytes, 0, 16);
    SecretKeySpec key = new SecretKeySpec(bytes, i, chacha ? 32 : 16, chacha ? "ChaCha20" : "AES");
    cipher.init(Cipher.ENCRYPT_MODE, key, parameters);
    return cipher.doFinal(bytes, 0, 8_192)[0];
  }

  private static long strings(byte[] bytes, int i) {
    String latin = new String(bytes, i, 2_000, StandardCharsets.ISO_8859_1);
    String wide = latin + "\u2603";
    long sum = latin.indexOf("\u0001\u0002", i) + wide.indexOf('\u2603') + latin.compareTo(wide);
    sum += wide.substring(i).equals(latin) ? 1 : latin.repeat(2).hashCode();
    sum += latin.getBytes(StandardCharsets.UTF_8).length;
    sum += new StringBuilder(latin).append(i).append(wide).length();
    // Short ones are copied to the stack where a page ends soon.
    for (int j = 0; j < 200; j++) {
      String in = new String(bytes, i + j, 4 + j % 12, StandardCharsets.ISO_8859_1);
      sum += in.indexOf(new String(bytes, i + j + 1, 2 + j % 2, StandardCharsets.ISO_8859_1));
    }
    return sum + Base64.getDecoder().decode(Base64.getEncoder().encode(bytes)).length;
  }

  private static long bigNumbers(byte[] bytes, int i) {
    BigInteger a = new BigInteger(1, bytes, i, 256).setBit(2_047).setBit(0);
    BigInteger b = new BigInteger(1, bytes, i + 256, 256).setBit(2_000);
    return a.multiply(b).add(b.multiply(b)).intValue()
        + b.modPow(BigInteger.valueOf(17), a).intValue();
  }

  private static long mathematics(byte[] bytes, int i) {
    double sum = 0;
    long bits = 0;
    for (int j = i; j < i + 200; j++) {
      double x = bytes[j] * 0.01 + i;
      sum += Math.sin(x) + Math.cos(x) + Math.tan(x) + Math.exp(x * 1e-4) + Math.log(x + 200);
      sum += Math.pow(x, 0.3) + Math.sqrt(Math.abs(x)) + Math.fma(x, x, 1);
      bits += Long.bitCount(j * 31L) + Integer.numberOfLeadingZeros(j) + Math.multiplyHigh(j, bits);
    }
    return (long) sum + bits;
  }

  private static long arrays(byte[] bytes, int i) {
    byte[] other = bytes.clone();
    other[i * 100]++;
    char[] chars = new char[4_000];
    Arrays.fill(chars, (char) i);
    int equal = Arrays.equals(bytes, other) ? 1 : 0;
    return Arrays.mismatch(bytes, other) + Arrays.hashCode(chars) + equal;
  }

  @Override
  boolean enough(Run run) throws JMException {
    return Compiled.ids(Intrinsics.class).size() >= LEAST_COMPILED;
  }

  @Override
  void prove(Run run) throws Exception {
    run.count("methods compiled", Compiled.ids(Intrinsics.class).size());
    run.require("calls", KINDS * CALLS * run.iterations());
    run.require("methods compiled", LEAST_COMPILED);
  }
}
