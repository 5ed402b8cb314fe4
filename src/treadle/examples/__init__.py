"""Programs written as users write them: to AutoGraph and in error messages they are user code."""
