"""The search for better settings: what may vary, the study, its journal, its workers."""
