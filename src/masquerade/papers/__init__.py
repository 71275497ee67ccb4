"""What a paper prints, rebuilt: tables and figures, the printed value beside the measured one."""
