// What is done with each segment: words, what they mean, and what is refused.
#include "base/err.h"
#include "engine/files/segment_policy.h"
#include "vv_test.h"

static uint8_t bytes[1 << 16];

static void words(void)
{
	struct vv_segment_policy p;

	CHECK_EQ(vv_segment_policy_init(&p, NULL), 0);
	CHECK_EQ(p.rule[VV_SEGMENT_NONE].cut, VV_SEGMENT_POLICY_GEAR);
	for (unsigned i = 1; i < VV_SEGMENTS; i++) {
		CHECK_EQ(p.rule[i].cut, VV_SEGMENT_POLICY_PAGES);
		CHECK_EQ(p.rule[i].code, VV_SEGMENT_POLICY_AUTO);
		CHECK_EQ(vv_segment_policy_next(&p.rule[i], 4096, bytes, sizeof(bytes)), 4096);
		CHECK_EQ(vv_segment_policy_next(&p.rule[i], 4096, bytes, 100), 100);
	}
	CHECK_EQ(vv_segment_policy_init(&p, "all=pages:512+none,heap=rabin+trail,stack=gear:64/256/1024+deflate,anon=rabin:512/1024/2048"), 0);
	CHECK_EQ(vv_segment_policy_next(&p.rule[VV_SEGMENT_FILE], 4096, bytes, sizeof(bytes)), 512);
	CHECK_EQ(p.rule[VV_SEGMENT_FILE].code, VV_SEGMENT_POLICY_PLAIN);
	CHECK_EQ(p.rule[VV_SEGMENT_HEAP].cut, VV_SEGMENT_POLICY_RABIN);
	CHECK_EQ(p.rule[VV_SEGMENT_HEAP].code, VV_SEGMENT_POLICY_TRAIL);
	CHECK_EQ(vv_segment_policy_next(&p.rule[VV_SEGMENT_HEAP], 4096, bytes, sizeof(bytes)), VV_RABIN_MAX); // zeros
	CHECK_EQ(p.rule[VV_SEGMENT_STACK].code, VV_SEGMENT_POLICY_DEFLATE);
	CHECK_EQ(vv_segment_policy_next(&p.rule[VV_SEGMENT_STACK], 4096, bytes, sizeof(bytes)), 1024);
	CHECK_EQ(p.rule[VV_SEGMENT_ANON].code, VV_SEGMENT_POLICY_AUTO);
	CHECK_EQ(vv_segment_policy_next(&p.rule[VV_SEGMENT_ANON], 4096, bytes, sizeof(bytes)), 2048);
	CHECK_EQ(p.rule[VV_SEGMENT_NONE].cut, VV_SEGMENT_POLICY_GEAR);
}

static void refuses(const char *text, const char *why)
{
	struct vv_segment_policy p;

	CHECK_EQ(vv_segment_policy_init(&p, text), VV_EINVAL);
	if (!strstr(vv_err_last(), why)) {
		fprintf(stderr, "'%s': %s\n", text, vv_err_last());
		exit(1);
	}
}

int main(void)
{
	char longer[300];

	words();
	refuses("heap", "SEGMENT=CUT");
	refuses("=pages", "SEGMENT=CUT");
	refuses("-=pages", "SEGMENT=CUT");
	refuses("heaps=pages", "SEGMENT=CUT");
	refuses("heap=", "no way to cut");
	refuses("heap=page", "no way to cut");
	refuses("heap=pages:", "a page has");
	refuses("heap=pages:10", "a page has");
	refuses("heap=pages:4096x", "a page has");
	refuses("heap=gear:1/2", "MIN/AVG/MAX");
	refuses("heap=gear:512/4096/32768/1", "MIN/AVG/MAX");
	refuses("heap=gear:4096/512/32768", "ascend");
	refuses("heap=rabin:512/5000/32768", "powers of two");
	refuses("heap=pages+", "no way to code");
	refuses("heap=pages+gzip", "no way to code");
	refuses("heap=pages,,stack=pages", "SEGMENT=CUT");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	refuses(longer, "too long");
	return 0;
}
