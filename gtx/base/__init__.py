"""What every room uses: errors, files, signals, threads, compiled loops."""
