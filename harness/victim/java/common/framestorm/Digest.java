package framestorm;

import java.security.MessageDigest;
import java.util.List;

/** In the SHA-256 stub: the JDK's own digest methods are compiled by C2 here. */
final class Digest extends Scenario {
  private static final String DELEGATE = "java.security.MessageDigest$Delegate";
  private static final int BYTES = 256 * 1024;

  private final byte[] data = new byte[BYTES];
  private MessageDigest sha256;

  @Override
  void prepare(Compiler compiler) throws Exception {
    compiler.require(Compiler.C2); // C1 makes no call of the stub
    // C2 relies on which digests there are: its code would be thrown away as crypto-stubs loads
    // more.
    String provider = "sun.security.provider.";
    for (String other : List.of("MD5", "SHA", "SHA5$SHA512", "SHA3$SHA256", "SHA3$SHAKE256")) {
      Internals.load(provider + other);
    }
    // As MessageDigest.getInstance() makes it, which loads all providers first.
    sha256 =
        (MessageDigest)
            Internals.make(DELEGATE, Internals.make(provider + "SHA2$SHA256"), "SHA-256", null);
    sha256.update(new byte[1024]); // links what C2 compiles
    compiler.compile(MessageDigest.class.getMethod("update", byte[].class), Compiler.C2);
    Class<?> delegate = Class.forName(DELEGATE);
    compiler.compile(
        delegate.getDeclaredMethod("engineUpdate", byte[].class, int.class, int.class),
        Compiler.C2);
    Class<?> base = Class.forName("sun.security.provider.DigestBase");
    compiler.compile(
        base.getDeclaredMethod("engineUpdate", byte[].class, int.class, int.class), Compiler.C2);
    // In this method C2 replaces a call by one of the stub that digests many blocks.
    compiler.compileSeparately(
        base.getDeclaredMethod("implCompressMultiBlock", byte[].class, int.class, int.class),
        Compiler.C2);
    compiler.compileSeparately(Compiler.method(Digest.class, "update"), Compiler.C2);
  }

  @Override
  void run() {
    update();
  }

  private void update() {
    enter();
    while (!Harness.stopped) {
      sha256.update(data);
    }
    leave();
  }
}
