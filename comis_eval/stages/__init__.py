"""The stages of a recall: pure functions, one file each, in the order of the pipeline.

formulate, (search: the lanes), fuse, rerank, score, trust, diversify, dedup, budget, present.
Stages work on arrays whose rows are queries and whose columns are candidates; one recall
is a batch of one.
"""
