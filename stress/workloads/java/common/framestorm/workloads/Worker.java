package framestorm.workloads;

import java.util.SplittableRandom;

/** One of the threads a workload's iterations run on. Its random numbers follow from the seed. */
record Worker(Run run, int index, SplittableRandom random) {
  void count(String what, long more) {
    run.count(what, more);
  }
}
