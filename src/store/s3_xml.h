/* As much XML as S3 answers with, from bytes nobody trusts: elements, text, the five named entities and numeric ones,
 * CDATA, comments. A document type is refused, so nothing can be defined, fetched or expanded. */
#ifndef VV_STORE_S3_XML_H
#define VV_STORE_S3_XML_H

#include <stddef.h>

#define VV_S3_XML_TEXT (8 << 10) /* longest text of one element */

/* An element ends. path: its name after those of its parents, "ListBucketResult/Contents/Key", without namespace
 * prefixes. text: what stood in it, decoded, for an element without children; else NULL. A negative answer stops. */
typedef int vv_s3_xml_fn(void *ctx, const char *path, const char *text);

/* 0; VV_EIO with the place where the document stops making sense; or what fn answered. */
int vv_s3_xml_walk(const void *doc, size_t n, vv_s3_xml_fn *fn, void *ctx);

/* 1: the text at path (the first) is in out; 0: it is absent, too long for out, or the document no XML. Or VV_ENOMEM. */
int vv_s3_xml_find(const void *doc, size_t n, const char *path, char *out, size_t cap);

#endif
