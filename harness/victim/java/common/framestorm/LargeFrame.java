package framestorm;

// Laid out by hand: google-java-format would give each of 120 parameters a line.

/**
 * Two frames of kilobytes, one interpreted and one compiled where there is a compiler: as many
 * arguments as a method can have (the compiled one: as C2 accepts), and 120 values that wait on the
 * operand stack for a call to return. Each comes from a volatile read, which C2 cannot move behind
 * the call: the compiled frame spills all of them.
 */
final class LargeFrame extends Scenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.compileAnyway(Compiler.method(LargeFrame.class, "spin"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(LargeFrame.class, "compiled"), Compiler.C2);
    compiler.interpretOnly(Compiler.method(LargeFrame.class, "interpreted"));
  }

  @Override
  void run() {
    sink =
        interpreted(
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
            24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
            45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65,
            66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86,
            87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105,
            106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120);
  }

  private long spin(long x) {
    enter();
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    leave();
    return x;
  }

  private long interpreted(
      long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9,
      long a10, long a11, long a12, long a13, long a14, long a15, long a16, long a17, long a18,
      long a19, long a20, long a21, long a22, long a23, long a24, long a25, long a26, long a27,
      long a28, long a29, long a30, long a31, long a32, long a33, long a34, long a35, long a36,
      long a37, long a38, long a39, long a40, long a41, long a42, long a43, long a44, long a45,
      long a46, long a47, long a48, long a49, long a50, long a51, long a52, long a53, long a54,
      long a55, long a56, long a57, long a58, long a59, long a60, long a61, long a62, long a63,
      long a64, long a65, long a66, long a67, long a68, long a69, long a70, long a71, long a72,
      long a73, long a74, long a75, long a76, long a77, long a78, long a79, long a80, long a81,
      long a82, long a83, long a84, long a85, long a86, long a87, long a88, long a89, long a90,
      long a91, long a92, long a93, long a94, long a95, long a96, long a97, long a98, long a99,
      long a100, long a101, long a102, long a103, long a104, long a105, long a106, long a107,
      long a108, long a109, long a110, long a111, long a112, long a113, long a114, long a115,
      long a116, long a117, long a118, long a119) {
    return sink + a0 ^ (sink + a1 ^ (sink + a2 ^ (sink + a3 ^ (sink + a4 ^ (sink + a5 ^ (
        sink + a6 ^ (sink + a7 ^ (sink + a8 ^ (sink + a9 ^ (sink + a10 ^ (sink + a11 ^ (
        sink + a12 ^ (sink + a13 ^ (sink + a14 ^ (sink + a15 ^ (sink + a16 ^ (sink + a17 ^ (
        sink + a18 ^ (sink + a19 ^ (sink + a20 ^ (sink + a21 ^ (sink + a22 ^ (sink + a23 ^ (
        sink + a24 ^ (sink + a25 ^ (sink + a26 ^ (sink + a27 ^ (sink + a28 ^ (sink + a29 ^ (
        sink + a30 ^ (sink + a31 ^ (sink + a32 ^ (sink + a33 ^ (sink + a34 ^ (sink + a35 ^ (
        sink + a36 ^ (sink + a37 ^ (sink + a38 ^ (sink + a39 ^ (sink + a40 ^ (sink + a41 ^ (
        sink + a42 ^ (sink + a43 ^ (sink + a44 ^ (sink + a45 ^ (sink + a46 ^ (sink + a47 ^ (
        sink + a48 ^ (sink + a49 ^ (sink + a50 ^ (sink + a51 ^ (sink + a52 ^ (sink + a53 ^ (
        sink + a54 ^ (sink + a55 ^ (sink + a56 ^ (sink + a57 ^ (sink + a58 ^ (sink + a59 ^ (
        sink + a60 ^ (sink + a61 ^ (sink + a62 ^ (sink + a63 ^ (sink + a64 ^ (sink + a65 ^ (
        sink + a66 ^ (sink + a67 ^ (sink + a68 ^ (sink + a69 ^ (sink + a70 ^ (sink + a71 ^ (
        sink + a72 ^ (sink + a73 ^ (sink + a74 ^ (sink + a75 ^ (sink + a76 ^ (sink + a77 ^ (
        sink + a78 ^ (sink + a79 ^ (sink + a80 ^ (sink + a81 ^ (sink + a82 ^ (sink + a83 ^ (
        sink + a84 ^ (sink + a85 ^ (sink + a86 ^ (sink + a87 ^ (sink + a88 ^ (sink + a89 ^ (
        sink + a90 ^ (sink + a91 ^ (sink + a92 ^ (sink + a93 ^ (sink + a94 ^ (sink + a95 ^ (
        sink + a96 ^ (sink + a97 ^ (sink + a98 ^ (sink + a99 ^ (sink + a100 ^ (sink + a101 ^ (
        sink + a102 ^ (sink + a103 ^ (sink + a104 ^ (sink + a105 ^ (sink + a106 ^ (sink + a107 ^ (
        sink + a108 ^ (sink + a109 ^ (sink + a110 ^ (sink + a111 ^ (sink + a112 ^ (sink + a113 ^ (
        sink + a114 ^ (sink + a115 ^ (sink + a116 ^ (sink + a117 ^ (sink + a118 ^ (sink + a119 ^ (
            compiled(
                a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
                a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35,
                a36, a37, a38, a39)
        ))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
        ))))))))))))))))))))))))))))));
  }

  private long compiled(
      long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9,
      long a10, long a11, long a12, long a13, long a14, long a15, long a16, long a17, long a18,
      long a19, long a20, long a21, long a22, long a23, long a24, long a25, long a26, long a27,
      long a28, long a29, long a30, long a31, long a32, long a33, long a34, long a35, long a36,
      long a37, long a38, long a39) {
    return sink + a0 ^ (sink + a1 ^ (sink + a2 ^ (sink + a3 ^ (sink + a4 ^ (sink + a5 ^ (
        sink + a6 ^ (sink + a7 ^ (sink + a8 ^ (sink + a9 ^ (sink + a10 ^ (sink + a11 ^ (
        sink + a12 ^ (sink + a13 ^ (sink + a14 ^ (sink + a15 ^ (sink + a16 ^ (sink + a17 ^ (
        sink + a18 ^ (sink + a19 ^ (sink + a20 ^ (sink + a21 ^ (sink + a22 ^ (sink + a23 ^ (
        sink + a24 ^ (sink + a25 ^ (sink + a26 ^ (sink + a27 ^ (sink + a28 ^ (sink + a29 ^ (
        sink + a30 ^ (sink + a31 ^ (sink + a32 ^ (sink + a33 ^ (sink + a34 ^ (sink + a35 ^ (
        sink + a36 ^ (sink + a37 ^ (sink + a38 ^ (sink + a39 ^ (sink + a0 ^ (sink + a1 ^ (
        sink + a2 ^ (sink + a3 ^ (sink + a4 ^ (sink + a5 ^ (sink + a6 ^ (sink + a7 ^ (sink + a8 ^ (
        sink + a9 ^ (sink + a10 ^ (sink + a11 ^ (sink + a12 ^ (sink + a13 ^ (sink + a14 ^ (
        sink + a15 ^ (sink + a16 ^ (sink + a17 ^ (sink + a18 ^ (sink + a19 ^ (sink + a20 ^ (
        sink + a21 ^ (sink + a22 ^ (sink + a23 ^ (sink + a24 ^ (sink + a25 ^ (sink + a26 ^ (
        sink + a27 ^ (sink + a28 ^ (sink + a29 ^ (sink + a30 ^ (sink + a31 ^ (sink + a32 ^ (
        sink + a33 ^ (sink + a34 ^ (sink + a35 ^ (sink + a36 ^ (sink + a37 ^ (sink + a38 ^ (
        sink + a39 ^ (sink + a0 ^ (sink + a1 ^ (sink + a2 ^ (sink + a3 ^ (sink + a4 ^ (sink + a5 ^ (
        sink + a6 ^ (sink + a7 ^ (sink + a8 ^ (sink + a9 ^ (sink + a10 ^ (sink + a11 ^ (
        sink + a12 ^ (sink + a13 ^ (sink + a14 ^ (sink + a15 ^ (sink + a16 ^ (sink + a17 ^ (
        sink + a18 ^ (sink + a19 ^ (sink + a20 ^ (sink + a21 ^ (sink + a22 ^ (sink + a23 ^ (
        sink + a24 ^ (sink + a25 ^ (sink + a26 ^ (sink + a27 ^ (sink + a28 ^ (sink + a29 ^ (
        sink + a30 ^ (sink + a31 ^ (sink + a32 ^ (sink + a33 ^ (sink + a34 ^ (sink + a35 ^ (
        sink + a36 ^ (sink + a37 ^ (sink + a38 ^ (sink + a39 ^ (
            spin(a0)
        ))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
        ))))))))))))))))))))))))))))));
  }
}
