package framestorm;

/**
 * Two frames of kilobytes, one interpreted and one compiled where there is a compiler: as many
 * arguments as a method can have (the compiled one: as C2 accepts), and as many locals that live
 * across a call. Each comes from a volatile read, which C2 cannot move behind the call: the compiled
 * frame spills all of them.
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

  private long spin(long seed) {
    enter();
    long x = seed;
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
    long b0 = sink + a0;
    long b1 = sink + a1;
    long b2 = sink + a2;
    long b3 = sink + a3;
    long b4 = sink + a4;
    long b5 = sink + a5;
    long b6 = sink + a6;
    long b7 = sink + a7;
    long b8 = sink + a8;
    long b9 = sink + a9;
    long b10 = sink + a10;
    long b11 = sink + a11;
    long b12 = sink + a12;
    long b13 = sink + a13;
    long b14 = sink + a14;
    long b15 = sink + a15;
    long b16 = sink + a16;
    long b17 = sink + a17;
    long b18 = sink + a18;
    long b19 = sink + a19;
    long b20 = sink + a20;
    long b21 = sink + a21;
    long b22 = sink + a22;
    long b23 = sink + a23;
    long b24 = sink + a24;
    long b25 = sink + a25;
    long b26 = sink + a26;
    long b27 = sink + a27;
    long b28 = sink + a28;
    long b29 = sink + a29;
    long b30 = sink + a30;
    long b31 = sink + a31;
    long b32 = sink + a32;
    long b33 = sink + a33;
    long b34 = sink + a34;
    long b35 = sink + a35;
    long b36 = sink + a36;
    long b37 = sink + a37;
    long b38 = sink + a38;
    long b39 = sink + a39;
    long b40 = sink + a40;
    long b41 = sink + a41;
    long b42 = sink + a42;
    long b43 = sink + a43;
    long b44 = sink + a44;
    long b45 = sink + a45;
    long b46 = sink + a46;
    long b47 = sink + a47;
    long b48 = sink + a48;
    long b49 = sink + a49;
    long b50 = sink + a50;
    long b51 = sink + a51;
    long b52 = sink + a52;
    long b53 = sink + a53;
    long b54 = sink + a54;
    long b55 = sink + a55;
    long b56 = sink + a56;
    long b57 = sink + a57;
    long b58 = sink + a58;
    long b59 = sink + a59;
    long b60 = sink + a60;
    long b61 = sink + a61;
    long b62 = sink + a62;
    long b63 = sink + a63;
    long b64 = sink + a64;
    long b65 = sink + a65;
    long b66 = sink + a66;
    long b67 = sink + a67;
    long b68 = sink + a68;
    long b69 = sink + a69;
    long b70 = sink + a70;
    long b71 = sink + a71;
    long b72 = sink + a72;
    long b73 = sink + a73;
    long b74 = sink + a74;
    long b75 = sink + a75;
    long b76 = sink + a76;
    long b77 = sink + a77;
    long b78 = sink + a78;
    long b79 = sink + a79;
    long b80 = sink + a80;
    long b81 = sink + a81;
    long b82 = sink + a82;
    long b83 = sink + a83;
    long b84 = sink + a84;
    long b85 = sink + a85;
    long b86 = sink + a86;
    long b87 = sink + a87;
    long b88 = sink + a88;
    long b89 = sink + a89;
    long b90 = sink + a90;
    long b91 = sink + a91;
    long b92 = sink + a92;
    long b93 = sink + a93;
    long b94 = sink + a94;
    long b95 = sink + a95;
    long b96 = sink + a96;
    long b97 = sink + a97;
    long b98 = sink + a98;
    long b99 = sink + a99;
    long b100 = sink + a100;
    long b101 = sink + a101;
    long b102 = sink + a102;
    long b103 = sink + a103;
    long b104 = sink + a104;
    long b105 = sink + a105;
    long b106 = sink + a106;
    long b107 = sink + a107;
    long b108 = sink + a108;
    long b109 = sink + a109;
    long b110 = sink + a110;
    long b111 = sink + a111;
    long b112 = sink + a112;
    long b113 = sink + a113;
    long b114 = sink + a114;
    long b115 = sink + a115;
    long b116 = sink + a116;
    long b117 = sink + a117;
    long b118 = sink + a118;
    long b119 = sink + a119;
    long x =
        compiled(
            b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18,
            b19, b20, b21, b22, b23, b24, b25, b26, b27, b28, b29, b30, b31, b32, b33, b34, b35,
            b36, b37, b38, b39);
    return x
        ^ b0 ^ b1 ^ b2 ^ b3 ^ b4 ^ b5 ^ b6 ^ b7 ^ b8 ^ b9 ^ b10 ^ b11 ^ b12 ^ b13 ^ b14 ^ b15
        ^ b16 ^ b17 ^ b18 ^ b19 ^ b20 ^ b21 ^ b22 ^ b23 ^ b24 ^ b25 ^ b26 ^ b27 ^ b28 ^ b29 ^ b30
        ^ b31 ^ b32 ^ b33 ^ b34 ^ b35 ^ b36 ^ b37 ^ b38 ^ b39 ^ b40 ^ b41 ^ b42 ^ b43 ^ b44 ^ b45
        ^ b46 ^ b47 ^ b48 ^ b49 ^ b50 ^ b51 ^ b52 ^ b53 ^ b54 ^ b55 ^ b56 ^ b57 ^ b58 ^ b59 ^ b60
        ^ b61 ^ b62 ^ b63 ^ b64 ^ b65 ^ b66 ^ b67 ^ b68 ^ b69 ^ b70 ^ b71 ^ b72 ^ b73 ^ b74 ^ b75
        ^ b76 ^ b77 ^ b78 ^ b79 ^ b80 ^ b81 ^ b82 ^ b83 ^ b84 ^ b85 ^ b86 ^ b87 ^ b88 ^ b89 ^ b90
        ^ b91 ^ b92 ^ b93 ^ b94 ^ b95 ^ b96 ^ b97 ^ b98 ^ b99 ^ b100 ^ b101 ^ b102 ^ b103 ^ b104
        ^ b105 ^ b106 ^ b107 ^ b108 ^ b109 ^ b110 ^ b111 ^ b112 ^ b113 ^ b114 ^ b115 ^ b116 ^ b117
        ^ b118 ^ b119;
  }

  private long compiled(
      long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9,
      long a10, long a11, long a12, long a13, long a14, long a15, long a16, long a17, long a18,
      long a19, long a20, long a21, long a22, long a23, long a24, long a25, long a26, long a27,
      long a28, long a29, long a30, long a31, long a32, long a33, long a34, long a35, long a36,
      long a37, long a38, long a39) {
    long b0 = sink + a0;
    long b1 = sink + a1;
    long b2 = sink + a2;
    long b3 = sink + a3;
    long b4 = sink + a4;
    long b5 = sink + a5;
    long b6 = sink + a6;
    long b7 = sink + a7;
    long b8 = sink + a8;
    long b9 = sink + a9;
    long b10 = sink + a10;
    long b11 = sink + a11;
    long b12 = sink + a12;
    long b13 = sink + a13;
    long b14 = sink + a14;
    long b15 = sink + a15;
    long b16 = sink + a16;
    long b17 = sink + a17;
    long b18 = sink + a18;
    long b19 = sink + a19;
    long b20 = sink + a20;
    long b21 = sink + a21;
    long b22 = sink + a22;
    long b23 = sink + a23;
    long b24 = sink + a24;
    long b25 = sink + a25;
    long b26 = sink + a26;
    long b27 = sink + a27;
    long b28 = sink + a28;
    long b29 = sink + a29;
    long b30 = sink + a30;
    long b31 = sink + a31;
    long b32 = sink + a32;
    long b33 = sink + a33;
    long b34 = sink + a34;
    long b35 = sink + a35;
    long b36 = sink + a36;
    long b37 = sink + a37;
    long b38 = sink + a38;
    long b39 = sink + a39;
    long b40 = sink + a0;
    long b41 = sink + a1;
    long b42 = sink + a2;
    long b43 = sink + a3;
    long b44 = sink + a4;
    long b45 = sink + a5;
    long b46 = sink + a6;
    long b47 = sink + a7;
    long b48 = sink + a8;
    long b49 = sink + a9;
    long b50 = sink + a10;
    long b51 = sink + a11;
    long b52 = sink + a12;
    long b53 = sink + a13;
    long b54 = sink + a14;
    long b55 = sink + a15;
    long b56 = sink + a16;
    long b57 = sink + a17;
    long b58 = sink + a18;
    long b59 = sink + a19;
    long b60 = sink + a20;
    long b61 = sink + a21;
    long b62 = sink + a22;
    long b63 = sink + a23;
    long b64 = sink + a24;
    long b65 = sink + a25;
    long b66 = sink + a26;
    long b67 = sink + a27;
    long b68 = sink + a28;
    long b69 = sink + a29;
    long b70 = sink + a30;
    long b71 = sink + a31;
    long b72 = sink + a32;
    long b73 = sink + a33;
    long b74 = sink + a34;
    long b75 = sink + a35;
    long b76 = sink + a36;
    long b77 = sink + a37;
    long b78 = sink + a38;
    long b79 = sink + a39;
    long b80 = sink + a0;
    long b81 = sink + a1;
    long b82 = sink + a2;
    long b83 = sink + a3;
    long b84 = sink + a4;
    long b85 = sink + a5;
    long b86 = sink + a6;
    long b87 = sink + a7;
    long b88 = sink + a8;
    long b89 = sink + a9;
    long b90 = sink + a10;
    long b91 = sink + a11;
    long b92 = sink + a12;
    long b93 = sink + a13;
    long b94 = sink + a14;
    long b95 = sink + a15;
    long b96 = sink + a16;
    long b97 = sink + a17;
    long b98 = sink + a18;
    long b99 = sink + a19;
    long b100 = sink + a20;
    long b101 = sink + a21;
    long b102 = sink + a22;
    long b103 = sink + a23;
    long b104 = sink + a24;
    long b105 = sink + a25;
    long b106 = sink + a26;
    long b107 = sink + a27;
    long b108 = sink + a28;
    long b109 = sink + a29;
    long b110 = sink + a30;
    long b111 = sink + a31;
    long b112 = sink + a32;
    long b113 = sink + a33;
    long b114 = sink + a34;
    long b115 = sink + a35;
    long b116 = sink + a36;
    long b117 = sink + a37;
    long b118 = sink + a38;
    long b119 = sink + a39;
    long x = spin(b0);
    return x
        ^ b0 ^ b1 ^ b2 ^ b3 ^ b4 ^ b5 ^ b6 ^ b7 ^ b8 ^ b9 ^ b10 ^ b11 ^ b12 ^ b13 ^ b14 ^ b15
        ^ b16 ^ b17 ^ b18 ^ b19 ^ b20 ^ b21 ^ b22 ^ b23 ^ b24 ^ b25 ^ b26 ^ b27 ^ b28 ^ b29 ^ b30
        ^ b31 ^ b32 ^ b33 ^ b34 ^ b35 ^ b36 ^ b37 ^ b38 ^ b39 ^ b40 ^ b41 ^ b42 ^ b43 ^ b44 ^ b45
        ^ b46 ^ b47 ^ b48 ^ b49 ^ b50 ^ b51 ^ b52 ^ b53 ^ b54 ^ b55 ^ b56 ^ b57 ^ b58 ^ b59 ^ b60
        ^ b61 ^ b62 ^ b63 ^ b64 ^ b65 ^ b66 ^ b67 ^ b68 ^ b69 ^ b70 ^ b71 ^ b72 ^ b73 ^ b74 ^ b75
        ^ b76 ^ b77 ^ b78 ^ b79 ^ b80 ^ b81 ^ b82 ^ b83 ^ b84 ^ b85 ^ b86 ^ b87 ^ b88 ^ b89 ^ b90
        ^ b91 ^ b92 ^ b93 ^ b94 ^ b95 ^ b96 ^ b97 ^ b98 ^ b99 ^ b100 ^ b101 ^ b102 ^ b103 ^ b104
        ^ b105 ^ b106 ^ b107 ^ b108 ^ b109 ^ b110 ^ b111 ^ b112 ^ b113 ^ b114 ^ b115 ^ b116 ^ b117
        ^ b118 ^ b119;
  }
}
