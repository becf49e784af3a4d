/* libcurl, loaded when the first S3 store is opened. It loads thirty libraries, which a program
 * with a directory store, or under libvarve_preload, should not need. */
#ifndef VV_STORE_S3_S3_CURL_H
#define VV_STORE_S3_S3_CURL_H

#include <curl/curl.h>

#define VV_S3_CURL_FUNCTIONS(X)                                                                                         \
	X(CURLcode, global_init, (long flags))                                                                          \
	X(CURL *, easy_init, (void))                                                                                    \
	X(CURLcode, easy_setopt, (CURL * c, CURLoption option, ...))                                                    \
	X(CURLcode, easy_perform, (CURL * c))                                                                           \
	X(CURLcode, easy_getinfo, (CURL * c, CURLINFO info, ...))                                                       \
	X(void, easy_reset, (CURL * c))                                                                                 \
	X(void, easy_cleanup, (CURL * c))                                                                               \
	X(const char *, easy_strerror, (CURLcode code))                                                                 \
	X(struct curl_slist *, slist_append, (struct curl_slist * list, const char *text))                              \
	X(void, slist_free_all, (struct curl_slist * list))

struct vv_s3_curl {
#define VV_S3_CURL_MEMBER(type, name, args) type(*name) args;
	VV_S3_CURL_FUNCTIONS(VV_S3_CURL_MEMBER)
#undef VV_S3_CURL_MEMBER
};

extern struct vv_s3_curl vv_s3_curl; /* valid after this call: */
int vv_s3_curl_start(void);

#endif
