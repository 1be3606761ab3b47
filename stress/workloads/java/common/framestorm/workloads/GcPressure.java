package framestorm.workloads;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Allocates: short-lived, surviving and large objects, trees that are rebuilt, references of all
 * kinds.
 */
final class GcPressure extends Workload {
  private static final int TREE_DEPTH = 12;
  private static final int SURVIVORS = 20;
  private static final int LARGE_BYTES = 3 << 20;
  private static final long LEAST_COLLECTIONS = 3;

  private record Tree(Tree left, Tree right, byte[] load) {
    static Tree of(int depth) {
      return depth == 0
          ? new Tree(null, null, new byte[16])
          : new Tree(of(depth - 1), of(depth - 1), null);
    }

    long size() {
      return left == null ? 1 : 1 + left.size() + right.size();
    }
  }

  private final ThreadLocal<Deque<Object>> survivors = ThreadLocal.withInitial(ArrayDeque::new);
  private final ReferenceQueue<Object> queue = new ReferenceQueue<>();
  private long collectionsBefore;

  @Override
  void prepare(Run run) {
    collectionsBefore = collections();
  }

  @Override
  void iterate(Worker worker) {
    Deque<Object> kept = survivors.get();
    Tree tree = Tree.of(TREE_DEPTH);
    kept.add(tree);
    kept.add(new WeakReference<>(Tree.of(4), queue));
    kept.add(new SoftReference<>(new byte[worker.random().nextInt(1 << 16)], queue));
    kept.add(new PhantomReference<>(new Object(), queue));
    byte[] large = new byte[LARGE_BYTES];
    large[worker.random().nextInt(LARGE_BYTES)] = 1;
    while (kept.size() > SURVIVORS) {
      kept.poll();
    }
    for (Reference<?> gone = queue.poll(); gone != null; gone = queue.poll()) {
      worker.count("references cleared", 1);
    }
    worker.count("objects", tree.size());
  }

  private static long collections() {
    long sum = 0;
    for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
      sum += Math.max(0, collector.getCollectionCount());
    }
    return sum;
  }

  @Override
  boolean enough(Run run) {
    return collections() - collectionsBefore >= LEAST_COLLECTIONS;
  }

  @Override
  void prove(Run run) throws NotDone {
    run.count("collections", collections() - collectionsBefore);
    run.require("collections", LEAST_COLLECTIONS);
  }
}
