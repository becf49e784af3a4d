/* Durations in words: three digits and a unit, and never a power of ten. Tables in a window. */
#include "cli/base/text.c" /* the command is no library */
#include "vv_test.h"

static void check(double s, const char *want)
{
	struct vv_text t = vv_text_duration(s);

	if (strcmp(t.s, want) != 0)
		fprintf(stderr, "%.9g s: '%s', not '%s'\n", s, t.s, want);
	CHECK(strcmp(t.s, want) == 0);
}

static void print(size_t window, const char *spare, const char *want)
{
	static const char *const columns[] = { "<NAME", ">BYTES", ">FOR OTHERS", "<MEANING", NULL };
	struct vv_text_table t;
	struct vv_buf b = { 0 };

	vv_text_table_init(&t, columns, " ");
	t.window = window;
	t.spare = spare;
	for (const char *const *s = (const char *const[]){ "a", "1", "22", "words that go on \xc3\xa4 little", "b", "333", "4", "", NULL }; *s; s++)
		vv_text_cell(&t, "%s", *s);
	CHECK(vv_text_table_print(&t, &b) == 0);
	vv_buf_add(&b, "", 1);
	if (strcmp((const char *)b.p, want) != 0)
		fprintf(stderr, "window %zu:\n%swanted:\n%s", window, (const char *)b.p, want);
	CHECK(strcmp((const char *)b.p, want) == 0);
	vv_text_table_fini(&t);
	vv_buf_fini(&b);
}

/* Wider than the window: columns are left out in their order, then the text at the end continues in further lines. Without a window nothing is. */
static void windows(void)
{
	const char *whole = " NAME  BYTES  FOR OTHERS  MEANING\n a         1          22  words that go on \xc3\xa4 little\n b       333           4\n";

	print(0, "BYTES", whole);
	print(51, "FOR OTHERS;BYTES", whole);
	print(50, "FOR OTHERS;BYTES", " NAME  BYTES  MEANING\n a         1  words that go on \xc3\xa4 little\n b       333\n");
	print(36, "nothing;FOR OTHERS", " NAME  BYTES  MEANING\n a         1  words that go on \xc3\xa4\n              little\n b       333\n");
	print(20, NULL, whole); /* too narrow for any of it */
	print(30, "MEANING;FOR OTHERS", " NAME  BYTES  FOR OTHERS\n a         1          22\n b       333           4\n");
}

int main(void)
{
	windows();
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
