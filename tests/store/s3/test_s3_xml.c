/* The XML scanner: what S3 sends, every truncation of it, and what it should never send. */
#include "vv_config.h"
#include "vv_test.h"

#if VV_HAVE_CURL
#include "base/buf.h"
#include "base/err.h"
#include "store/s3/s3_xml.h"

static int note(void *ctx, const char *path, const char *text)
{
	vv_buf_printf(ctx, "%s=%s;", path, text ? text : "(none)");
	return 0;
}

static int ignore(void *ctx, const char *path, const char *text)
{
	(void)ctx;
	(void)path;
	return text && strcmp(text, "stop") == 0 ? VV_EBUSY : 0;
}

static void check(const char *doc, const char *want)
{
	struct vv_buf got = { 0 };

	CHECK_EQ(vv_s3_xml_walk(doc, strlen(doc), note, &got), 0);
	vv_buf_add(&got, "", 1);
	CHECK_STR((char *)got.p, want);
	vv_buf_fini(&got);
}

static void test_good(void)
{
	check("<a/>", "a=;");
	check("\xef\xbb\xbf \n<?xml version=\"1.0\"?>\n<!-- <x> -->\n<a b='>' c=\"/>\"> <b>1</b> <c>2</c> </a>\n",
	      "a/b=1;a/c=2;a=(none);");
	check("<n:a xmlns:n='u'><n:b></n:b></n:a>", "a/b=;a=(none);");
	check("<a>x&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#233;&#x20ac;&#x1F600;</a>",
	      "a=x<>&\"'AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80;");
	check("<a>1<![CDATA[<&>]]>2</a >", "a=1<&>2;");
	check("<a><b>x</b>y</a>", "a/b=x;a=(none);");
}

static void test_bad(void)
{
	static const char *const docs[] = {
		"",
		" ",
		"x",
		"<",
		"<a",
		"<a>",
		"</a>",
		"<a></b>",
		"<a><b></a></b>",
		"<a/><b/>",
		"<a/>x",
		"&amp;<a/>",
		"<a>&nbsp;</a>",
		"<a>&amp</a>",
		"<a>&#0;</a>",
		"<a>&#;</a>",
		"<a>&#x;</a>",
		"<a>&#-1;</a>",
		"<a>&#xd800;</a>",
		"<a>&#x110000;</a>",
		"<a>&#9999999999;</a>",
		"<a b='></a>",
		"<a <b></b></a>",
		"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
		"<a><![CDATA[x</a>",
		"<![CDATA[x]]><a/>",
		"<!-- <a/>",
		"<>x</>",
		"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
		"<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/>",
	};

	for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]); i++) {
		if (vv_s3_xml_walk(docs[i], strlen(docs[i]), ignore, NULL) != VV_EIO) {
			fprintf(stderr, "accepted: %s\n", docs[i]);
			exit(1);
		}
	}
	CHECK_EQ(vv_s3_xml_walk("<a>\0</a>", 8, ignore, NULL), VV_EIO);
	CHECK_EQ(vv_s3_xml_walk(NULL, 0, ignore, NULL), VV_EIO);
	CHECK_EQ(vv_s3_xml_walk("<a><b>stop</b></a>", 18, ignore, NULL), VV_EBUSY);
}

/* Every prefix, and every single byte replaced, in memory of just that size: the sanitizer sees a step too far. */
static void test_mangled(void)
{
	static const char doc[] =
		"<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3/\"><IsTruncated>false</IsTruncated>"
		"<Contents><Key>a&amp;b&#x2f;</Key><Size>12</Size></Contents><!-- c --><X><![CDATA[y]]></X>"
		"<E/></ListBucketResult>";
	static const char evil[] = "<>/&;!?'\"-[]# \0x";

	for (size_t n = 0; n < sizeof(doc) - 1; n++) {
		char *part = malloc(n ? n : 1);

		CHECK(part);
		memcpy(part, doc, n);
		CHECK_EQ(vv_s3_xml_walk(part, n, ignore, NULL), VV_EIO);
		for (size_t i = 0; i < sizeof(evil) && n; i++) {
			part[n - 1] = evil[i];
			vv_s3_xml_walk(part, n, ignore, NULL);
		}
		free(part);
	}
}

/* The longest text, with its end, fits in a buffer of VV_S3_XML_TEXT bytes. */
static void test_long_text(void)
{
	struct vv_buf doc = { 0 };

	vv_buf_printf(&doc, "<a>");
	for (int i = 0; i < VV_S3_XML_TEXT - 1; i++)
		vv_buf_add(&doc, "x", 1);
	vv_buf_printf(&doc, "</a>");
	CHECK_EQ(vv_s3_xml_walk(doc.p, doc.n, ignore, NULL), 0);
	doc.n -= 4;
	vv_buf_printf(&doc, "y</a>");
	CHECK_EQ(vv_s3_xml_walk(doc.p, doc.n, ignore, NULL), VV_EIO);
	vv_buf_fini(&doc);
}

static void test_find(void)
{
	static const char doc[] = "<Error><Code>SlowDown</Code><Code>Second</Code></Error>";
	char out[16];

	CHECK(vv_s3_xml_find(doc, sizeof(doc) - 1, "Error/Code", out, sizeof(out)));
	CHECK_STR(out, "SlowDown");
	CHECK(!vv_s3_xml_find(doc, sizeof(doc) - 1, "Error", out, sizeof(out)));
	CHECK(!vv_s3_xml_find(doc, sizeof(doc) - 1, "Error/Code", out, 6)); /* neither fits */
	CHECK(!vv_s3_xml_find(doc, sizeof(doc) - 2, "Error/Code", out, sizeof(out)));
}

int main(void)
{
	test_good();
	test_bad();
	test_mangled();
	test_long_text();
	test_find();
	return 0;
}
#else
int main(void)
{
	SKIP("built without libcurl");
}
#endif
