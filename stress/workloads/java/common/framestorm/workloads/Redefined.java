package framestorm.workloads;

/** What {@link ClassRedefinition} puts new versions of in place. */
public final class Redefined implements Versioned {
  /** The version in the class file as compiled; too large for an instruction's operand. */
  static final int MARK = 0x5EED_F00D;

  /** Tag of such a constant in a class file. */
  static final byte CONSTANT_INTEGER = 3;

  @Override
  public int version() {
    return MARK;
  }

  /** Has the constant in it, too: the next version is another method, this one obsolete. */
  @Override
  public long descend(Versioned[] all, int next, Runnable atTheEnd) {
    if (next < all.length) {
      int own = MARK; // an int in the class file, as in version()
      return all[next].descend(all, next + 1, atTheEnd) * 31 + own;
    }
    if (atTheEnd != null) {
      atTheEnd.run();
    }
    return version();
  }
}
