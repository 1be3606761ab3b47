package framestorm.workloads;

/** Code that is loaded in many copies and called through this interface. */
public interface Kernel {
  long call(Object argument, int n);
}
