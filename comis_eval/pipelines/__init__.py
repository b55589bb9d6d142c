"""The systems under evaluation, behind one protocol."""
