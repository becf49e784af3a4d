/* The subset of XML in S3's answers, from untrusted bytes: elements, text, the five named entities
 * and numeric ones, CDATA, comments. A document type is refused, so nothing can be defined, fetched
 * or expanded. */
#ifndef VV_STORE_S3_S3_XML_H
#define VV_STORE_S3_S3_XML_H

#include <stddef.h>

#define VV_S3_XML_TEXT (8 << 10) /* room for the longest text of one element and its end */

/* Called at the end of an element. The path is its name after those of its parents,
 * "ListBucketResult/Contents/Key", without namespace prefixes. The text is decoded; it is NULL if
 * the element has children. A negative result stops the walk. */
typedef int vv_s3_xml_fn(void *ctx, const char *path, const char *text);

/* 0; VV_EIO with the position of the first invalid byte; or the result of fn. */
int vv_s3_xml_walk(const void *doc, size_t n, vv_s3_xml_fn *fn, void *ctx);

/* 1: the first text at path is in out; 0: it is absent, too long for out, or the document is not
 * XML. Or VV_ENOMEM. */
int vv_s3_xml_find(const void *doc, size_t n, const char *path, char *out, size_t cap);

#endif
