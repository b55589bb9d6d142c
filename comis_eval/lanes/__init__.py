"""The lanes: a query set in, ranked rows out, one file each."""
