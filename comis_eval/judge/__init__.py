"""Labelling: pools of candidates, a page to grade them on, and judgments turned into qrels."""
