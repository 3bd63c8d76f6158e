// Charts as plain SVG.
