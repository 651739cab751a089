"""The controller: the daemon that certifies what happens at the table before it takes effect, and delivers it."""
