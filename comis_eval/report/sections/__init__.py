"""The sections of a page, one file each: what stands there in words, tables and figures."""
