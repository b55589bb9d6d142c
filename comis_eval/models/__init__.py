"""Embedders and rerankers behind two small protocols."""
