"""`python -m pallas_fix`."""

from pallas_fix.cli import main

if __name__ == "__main__":
    main()
