/** Leaves marked frames in each way there is; the property `agent` names the library. */
public class MarkCases {
  static native int mark(int up);

  static native int markToMark(int up); // whose handler's iterator ends at the next one

  static native boolean move(int mark, int up);

  static native int told(int mark);

  static native int order(int mark);

  static native boolean isSet(int mark);

  static native void remove(int mark);

  static native int wrongCallers();

  static native int leave(Thread thread, boolean pop);

  static class Left extends Exception {
    Left() {
      super(null, null, false, false);
    }
  }

  interface Body {
    void run() throws Exception;
  }

  static final int ROUNDS = 2000;
  static final int OUTERMOST = -1;
  static final int OUTERMOST_VIRTUAL = -2; // of a virtual thread's, on the stack
  static volatile int sink;
  static volatile int marked; // the mark of the case at hand
  static int early; // told while the frame was still on the stack, as when it is deoptimised

  static void check(boolean holds, String what) {
    if (!holds) throw new AssertionError(what);
  }

  static int leaf(int n) {
    return n * 31 + sink;
  }

  static void markCaller() {
    marked = mark(2);
    check(marked >= 0, "a caller can be marked");
  }

  static int returns() {
    markCaller();
    int mark = marked;
    for (int i = 0; i < 5; i++) sink += leaf(i);
    if (told(mark) == 0) {
      check(isSet(mark), "set while its frame is there");
    } else {
      early++;
    }
    return sink;
  }

  static int throwsOut(int n) throws Left {
    markCaller();
    if (n >= 0) throw new Left();
    return leaf(n);
  }

  static int throwsThrough(int n) throws Left {
    return throwsOut(n) + leaf(n);
  }

  static int implicit(int[] array) {
    markCaller();
    return array[3];
  }

  static long loops(int rounds) {
    markCaller();
    long sum = 0;
    for (int i = 0; i < rounds; i++) sum += leaf(i);
    return sum;
  }

  static synchronized int locked() {
    markCaller();
    return leaf(1);
  }

  static int innerOfTwo() throws Left {
    markCaller();
    throw new Left();
  }

  static int outerOfTwo(int[] marks) throws Left {
    marks[0] = mark(1);
    try {
      return innerOfTwo() + leaf(1);
    } finally {
      marks[1] = marked;
    }
  }

  static int movesOut() {
    markCaller();
    int mark = marked;
    check(move(mark, 2), "moved to the caller");
    return leaf(1);
  }

  static int calls() {
    int n = movesOut();
    check(told(marked) == 0 || early++ >= 0, "it marks another frame");
    return n;
  }

  static int removes() {
    markCaller();
    remove(marked);
    check(!isSet(marked), "an ended mark marks nothing");
    return leaf(1);
  }

  static int deoptimised(Object[] objects, int at) {
    markCaller();
    return objects[at].hashCode() + leaf(at);
  }

  static void yields() {
    markCaller();
    Thread.yield();
    check(told(marked) == 1, "told when its virtual thread yields");
    check(!isSet(marked), "not set on the stack of another");
  }

  /** Most callers of a deep recursion are in the heap when it comes back from a yield. */
  static int throwsIntoTheHeap(int depth) throws Left {
    if (depth > 0) return throwsIntoTheHeap(depth - 1) + leaf(depth);
    Thread.yield();
    marked = mark(OUTERMOST_VIRTUAL);
    check(marked >= 0, "the frame that returns into the heap can be marked");
    throw new Left();
  }

  static void deepYields() {
    try {
      throwsIntoTheHeap(450);
    } catch (Left left) {
      check(told(marked) == 1, "told when it throws into the heap");
    }
  }

  static volatile int spinning;

  /** Calls nothing while it spins; never returns by itself. */
  static int spins() {
    markCaller();
    spinning++;
    while (true) sink++;
  }

  static void leavesByForce() throws Exception {
    int[] returned = new int[1];
    Thread thread = new Thread(() -> returned[0] = spins());
    int before = spinning;
    thread.start();
    while (spinning == before) Thread.sleep(1);
    int popped = marked;
    check(leave(thread, true) == 0, "PopFrame");
    // The call is made again.
    while (spinning == before + 1) Thread.sleep(1);
    check(told(popped) == 1, "told when its frame is popped");
    check(leave(thread, false) == 0, "ForceEarlyReturn");
    thread.join();
    check(returned[0] == 7 && told(marked) == 1, "told when its frame is made to return");
  }

  static void once(String what, Body body) throws Exception {
    try {
      body.run();
    } catch (Left | RuntimeException left) {
      // The first that the caller does is after the handler.
    }
    int times = told(marked);
    check(times == 1, what + ": told " + times + " times");
    check(!isSet(marked), what + ": still set");
    remove(marked);
  }

  static void each() throws Exception {
    once("return", MarkCases::returns);
    once("exception", () -> throwsOut(1));
    once("exception through a frame", () -> throwsThrough(1));
    once("implicit exception", () -> implicit(null));
    once("synchronized", MarkCases::locked);
    once("moved", MarkCases::calls);
    int[] marks = new int[2];
    once("two frames", () -> outerOfTwo(marks));
    check(told(marks[0]) == 1 && order(marks[1]) < order(marks[0]), "the newest first");
    removes();
    check(told(marked) == 0, "an ended mark is not told");
    check(mark(0) == -1, "the topmost frame may be past its poll");
  }

  static Thread started(boolean virtual, Runnable body) throws InterruptedException {
    Thread thread = virtual ? Thread.ofVirtual().unstarted(body) : new Thread(body);
    thread.setUncaughtExceptionHandler((t, e) -> failure = e);
    thread.start();
    thread.join();
    return thread;
  }

  static volatile Throwable failure;

  public static void main(String[] args) throws Exception {
    System.load(System.getProperty("agent"));
    for (int i = 0; i < ROUNDS; i++) each();
    check(early < ROUNDS / 10, "told early in " + early + " of " + ROUNDS + " rounds");
    for (int i = 0; i < 50; i++) {
      once("replaced on the stack", () -> loops(70_000));
      Object[] objects = {1, 2, i % 10 == 9 ? "other" : 3};
      once("deoptimised", () -> deoptimised(objects, 2));

      started(false, () -> marked = mark(OUTERMOST));
      check(told(marked) == 1 && !isSet(marked), "told when the outermost frame returns");
      started(
          false,
          () -> {
            marked = mark(OUTERMOST);
            throw new IllegalStateException();
          });
      check(failure instanceof IllegalStateException, "thrown out of the thread: " + failure);
      check(told(marked) == 1 && !isSet(marked), "told when it throws");
      failure = null;
      int[] marks = new int[2];
      started(
          false,
          () -> {
            marks[0] = markToMark(OUTERMOST);
            marks[1] = mark(OUTERMOST);
          });
      check(told(marks[0]) == 1 && told(marks[1]) == 1, "told of two marks when it returns");
      check(order(marks[0]) < order(marks[1]), "of two marks the first counts");
      started(true, MarkCases::yields);
      check(failure == null, "virtual: " + failure);
      started(true, MarkCases::deepYields);
      check(failure == null, "deep virtual: " + failure);
    }
    for (int i = 0; i < 10; i++) leavesByForce();
    check(wrongCallers() == 0, wrongCallers() + " handlers were given another caller");
    System.out.println("early " + early);
  }
}
