package framestorm.workloads;

/** What {@link ClassRedefinition} puts new versions of in place. */
final class Redefined {
  /** The version in the class file as compiled; too large for an instruction's operand. */
  static final int MARK = 0x5EED_F00D;

  /** Tag of such a constant in a class file. */
  static final byte CONSTANT_INTEGER = 3;

  int version() {
    return MARK;
  }

  long recurse(int n, Runnable atTheEnd) {
    if (n == 0) {
      if (atTheEnd != null) {
        atTheEnd.run();
      }
      return version();
    }
    return recurse(n - 1, atTheEnd) * 31 + version();
  }
}
