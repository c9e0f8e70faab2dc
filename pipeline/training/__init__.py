"""What both sides of Step 5 share: options, resume, log, records, processes."""
