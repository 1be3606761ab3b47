"""The Renaissance benchmark suite as workloads of `framestorm stress`: any jar of it from 0.14 on."""
