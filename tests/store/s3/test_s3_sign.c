/* Signature Version 4 against what AWS publishes: the examples of the S3 API reference ("Signature Calculations for the
 * Authorization Header") and a few of the aws-sig-v4-test-suite. */
#include "vv_config.h"
#include "vv_test.h"

#if VV_HAVE_CURL
#include "store/s3/s3_sign.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define S3_DATE "20130524T000000Z"
#define S3_HOST "examplebucket.s3.amazonaws.com"

static const struct vv_s3_sign_key s3_key = { "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
					      "us-east-1", "s3" };
static const struct vv_s3_sign_key suite_key = { "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1",
						 "service" };

static void check(const struct vv_s3_sign_key *key, const struct vv_s3_sign_request *r, const char *signed_headers,
		  const char *signature)
{
	struct vv_buf got = { 0 }, want = { 0 };

	vv_s3_sign_authorization(&got, key, r);
	vv_buf_add(&got, "", 1);
	vv_buf_printf(&want, "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request,SignedHeaders=%s,Signature=%s",
		      key->access, r->date, key->region, key->service, signed_headers, signature);
	CHECK_STR((char *)got.p, (char *)want.p);
	vv_buf_fini(&got);
	vv_buf_fini(&want);
}

static void test_s3_get(void)
{
	const struct vv_s3_pair h[] = { { "x-amz-date", S3_DATE },
					{ "host", S3_HOST },
					{ "x-amz-content-sha256", EMPTY },
					{ "range", "bytes=0-9" } };
	struct vv_s3_sign_request r = { "GET", "/test.txt", "", h, 4, S3_DATE, EMPTY };
	struct vv_buf b = { 0 };

	check(&s3_key, &r, "host;range;x-amz-content-sha256;x-amz-date",
	      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
	vv_s3_sign_canonical(&b, &r);
	vv_buf_add(&b, "", 1);
	CHECK_STR((char *)b.p, "GET\n/test.txt\n\nhost:" S3_HOST "\nrange:bytes=0-9\nx-amz-content-sha256:" EMPTY
			       "\nx-amz-date:" S3_DATE "\n\nhost;range;x-amz-content-sha256;x-amz-date\n" EMPTY);
	vv_buf_fini(&b);
}

static void test_s3_put(void)
{
	const char *hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
	const struct vv_s3_pair h[] = {
		{ "host", S3_HOST },
		{ "date", "Fri, 24 May 2013 00:00:00 GMT" },
		{ "x-amz-date", S3_DATE },
		{ "x-amz-storage-class", "REDUCED_REDUNDANCY" },
		{ "x-amz-content-sha256", hash },
	};
	struct vv_buf path = { 0 };
	struct vv_s3_sign_request r = { "PUT", NULL, "", h, 5, S3_DATE, hash };

	vv_s3_sign_encode(&path, "/test$file.text", true);
	vv_buf_add(&path, "", 1);
	r.path = (char *)path.p;
	check(&s3_key, &r, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
	      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
	vv_buf_fini(&path);
}

static void check_s3_query(const struct vv_s3_pair *query, size_t n, const char *signature)
{
	const struct vv_s3_pair h[] = { { "host", S3_HOST },
					{ "x-amz-content-sha256", EMPTY },
					{ "x-amz-date", S3_DATE } };
	struct vv_s3_sign_request r = { "GET", "/", NULL, h, 3, S3_DATE, EMPTY };
	struct vv_buf q = { 0 };

	vv_s3_sign_query(&q, query, n);
	vv_buf_add(&q, "", 1);
	r.query = (char *)q.p;
	check(&s3_key, &r, "host;x-amz-content-sha256;x-amz-date", signature);
	vv_buf_fini(&q);
}

static void test_s3_queries(void)
{
	const struct vv_s3_pair lifecycle[] = { { "lifecycle", "" } };
	const struct vv_s3_pair list[] = { { "prefix", "J" }, { "max-keys", "2" } };

	check_s3_query(lifecycle, 1, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	check_s3_query(list, 2, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_suite(void)
{
	const char *date = "20150830T123600Z";
	const struct vv_s3_pair plain[] = { { "host", "example.amazonaws.com" }, { "x-amz-date", date } };
	const struct vv_s3_pair blanks[] = { { "host", "example.amazonaws.com" },
					     { "my-header1", " value1" },
					     { "my-header2", " \"a   b   c\"" },
					     { "x-amz-date", date } };
	struct vv_s3_sign_request r = { "GET", "/", "", plain, 2, date, EMPTY };

	check(&suite_key, &r, "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
	r.method = "POST";
	check(&suite_key, &r, "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
	r.method = "GET";
	r.query = "Param1=value1&Param2=value2";
	check(&suite_key, &r, "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
	r.query = "";
	r.headers = blanks;
	r.n_headers = 4;
	check(&suite_key, &r, "host;my-header1;my-header2;x-amz-date",
	      "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

static void test_encoding(void)
{
	struct vv_buf b = { 0 };

	vv_s3_sign_encode(&b, "a/b c~d-e_f.g+%\xc3\xa9", true);
	vv_buf_add(&b, "|", 1);
	vv_s3_sign_encode(&b, "a/b=", false);
	vv_buf_add(&b, "", 1);
	CHECK_STR((char *)b.p, "a/b%20c~d-e_f.g%2B%25%C3%A9|a%2Fb%3D");
	vv_buf_fini(&b);
}

int main(void)
{
	test_s3_get();
	test_s3_put();
	test_s3_queries();
	test_suite();
	test_encoding();
	return 0;
}
#else
int main(void)
{
	SKIP("built without libcurl");
}
#endif
