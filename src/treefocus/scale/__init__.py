"""From one batch to files and clusters: `batches` is the building block, the rest puts engines under it."""
