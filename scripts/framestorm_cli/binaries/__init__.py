"""ELF files, symbols, machine code."""
