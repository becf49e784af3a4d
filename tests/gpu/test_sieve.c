// ctest: TIMEOUT 600 RUN_SERIAL
// The sieve of device memory gives what docs/dedup.md says, to the bit: all that the host's sieve must do, and what only a device can do wrong.
#include "support/device.h"
#include "support/sieve_suite.h"
#include "vv_test.h"

int main(int argc, char **argv)
{
	struct sieve_suite s = { .space = device_space(), .get = device_get, .put = device_put, .seed = 11, .rounds = 25, .xxh3_only = true,
				 .looks_at_all = true };

	if (argc > 1) /* fewer, under a tool that makes it slow */
		s.rounds = atoi(argv[1]);
	if (s.rounds == 0) { /* or very slow: each kernel, but little else */
		s.rounds = 1;
		sieve_suite_random(&s);
		sieve_suite_compare(&s);
		return 0;
	}
	sieve_suite_run(&s);
	s.get = device_get_odd;
	s.put = device_put_odd;
	s.seed = 12;
	s.rounds = 1 + s.rounds / 5;
	sieve_suite_run(&s);
	return 0;
}
