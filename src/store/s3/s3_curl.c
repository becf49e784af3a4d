#include "store/s3/s3_curl.h"
#include "base/err.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct vv_s3_curl vv_s3_curl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char trouble[300];

/* Debian's second name is for the build with GnuTLS. */
static void *load(void)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	return library ? library : dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
}

static void start(void)
{
	void *library = load();
	const char *missing = NULL;
	CURLcode rc;

	if (!library) {
		const char *why = dlerror();

		snprintf(trouble, sizeof(trouble), "libcurl cannot be loaded: %s", why ? why : "not found");
		return;
	}
#define FIND(type, name, args)                                                       \
	vv_s3_curl.name = (__typeof__(vv_s3_curl.name))dlsym(library, "curl_" #name); \
	missing = vv_s3_curl.name ? missing : "curl_" #name;
	VV_S3_CURL_FUNCTIONS(FIND)
#undef FIND
	if (missing) {
		snprintf(trouble, sizeof(trouble), "libcurl is no curl that we know: it has no %s", missing);
		return;
	}
	rc = vv_s3_curl.global_init(CURL_GLOBAL_DEFAULT);
	if (rc != CURLE_OK)
		snprintf(trouble, sizeof(trouble), "libcurl does not start: %s", vv_s3_curl.easy_strerror(rc));
}

int vv_s3_curl_start(void)
{
	pthread_once(&once, start);
	return trouble[0] ? vv_err_set(VV_ENOTSUP, "s3: %s (Debian: libcurl4)", trouble) : 0;
}
