"""The rules of the recall tool, one file each: pure functions of plain values and arrays."""
