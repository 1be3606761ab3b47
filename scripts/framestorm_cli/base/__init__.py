"""What everything uses: errors, paths, set-up steps, the terminal."""
