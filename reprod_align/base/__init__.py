"""What every room needs: whole files, quiet libraries, names, numbers drawn by key, pages and text."""
