"""Can printed scores come from one confusion matrix? Answered in exact arithmetic."""
