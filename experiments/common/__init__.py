"""What the experiments share: query sets, arms, paired figures, claims, and what is written."""
