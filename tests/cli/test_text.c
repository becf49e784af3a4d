/* Durations in words: three digits and a unit, and never a power of ten. */
#include "cli/base/text.c" /* the command is no library */
#include "vv_test.h"

static void check(double s, const char *want)
{
	struct vv_text t = vv_text_duration(s);

	if (strcmp(t.s, want) != 0)
		fprintf(stderr, "%.9g s: '%s', not '%s'\n", s, t.s, want);
	CHECK(strcmp(t.s, want) == 0);
}

int main(void)
{
	check(0, "0 us");
	check(0.9994e-3, "999 us");
	check(0.9996e-3, "1 ms");
	check(1.234e-3, "1.23 ms");
	check(0.9994, "999 ms");
	check(0.9996, "1 s");
	check(119.9, "120 s");
	check(121, "2 min");
	for (double s = 1e-9; s < 1e6; s *= 1.0007)
		CHECK(!strchr(vv_text_duration(s).s, '+') && !strstr(vv_text_duration(s).s, "1000"));
	return 0;
}
