"""What every package needs: comparing arrays, whole files, text and JSON, names, draws, web pages."""
