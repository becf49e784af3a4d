/* The closest of several words to one that is misspelt, and none to one that is another. */
#include "base/did_you_mean.h"
#include "vv_test.h"

static const char *const words[] = { "keep", "keep-every", "interval", "verify", "ls" };

static const char *nearest(const char *word)
{
	const char *best = NULL;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		best = vv_did_you_mean_best(word, words[i], best);
	return best ? best : "";
}

static void test_slips_are_understood(void)
{
	CHECK_STR(nearest("kep"), "keep");
	CHECK_STR(nearest("keeep"), "keep");
	CHECK_STR(nearest("keep-evry"), "keep-every");
	CHECK_STR(nearest("vreify"), "verify");
	CHECK_STR(nearest("inter"), "interval"); /* a beginning */
	CHECK_STR(nearest("sl"), "ls");
}

static void test_other_words_are_not(void)
{
	CHECK_STR(nearest("source"), "");
	CHECK_STR(nearest("x"), "");
	CHECK_STR(nearest(""), "");
	CHECK_STR(nearest("a-word-that-is-longer-than-thirty-two-letters-and-like-none"), "");
}

int main(void)
{
	test_slips_are_understood();
	test_other_words_are_not();
	return 0;
}
