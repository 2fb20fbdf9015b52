"""Which molecules of a library to measure next: `gtx select`. An annex: nothing else imports it."""
