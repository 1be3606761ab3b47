package framestorm;

/** Its program point is one of the functions in C that spin. */
abstract class SpinningScenario extends Scenario {
  @Override
  final boolean isAtPoint() {
    return super.isAtPoint() && Harness.isSpinning(name());
  }
}
