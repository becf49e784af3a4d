/* The names of a lineage's objects: docs/format.md, section 2. */
#ifndef VV_CORE_FORMAT_NAME_H
#define VV_CORE_FORMAT_NAME_H

#include <stdbool.h>
#include <stdint.h>

enum { VV_NAME_LINEAGE_MAX = 64, VV_NAME_LABEL_MAX = 64, VV_NAME_MAX = 192, VV_NAME_EPOCHS_PER_FOLDER = 100 };

/* 0, or VV_EINVAL with the reason. */
int vv_name_check_lineage(const char *lineage);
/* The same for the label of an epoch. It is neither a number nor `latest`, and holds no "..", so
 * that LINEAGE@LABEL and LINEAGE@FIRST..LAST have one meaning. */
int vv_name_check_label(const char *label);

void vv_name_record(char out[VV_NAME_MAX], const char *lineage);
void vv_name_lock(char out[VV_NAME_MAX], const char *lineage);
void vv_name_ended(char out[VV_NAME_MAX], const char *lineage);
void vv_name_verified(char out[VV_NAME_MAX], const char *lineage);
void vv_name_index(char out[VV_NAME_MAX], const char *lineage, uint32_t rank);
void vv_name_folder(char out[VV_NAME_MAX], const char *lineage, uint64_t folder);
void vv_name_commit(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch);
void vv_name_layer(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, uint32_t rank);
/* The file that holds the layers of ranks first..last side by side. */
void vv_name_bundle(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, uint32_t first, uint32_t last);

/* The parity that rank `rank` of `ranks` stores for an epoch. */
void vv_name_parity(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, uint32_t rank, uint32_t ranks);

void vv_name_label(char out[VV_NAME_MAX], const char *lineage, uint64_t epoch, const char *label);

enum vv_name_kind { VV_NAME_OTHER, VV_NAME_IS_COMMIT, VV_NAME_IS_LAYER };

/* Parses one component of an object's name, as listed. */
enum vv_name_kind vv_name_parse(const char *s, uint64_t *epoch, uint32_t *rank);
bool vv_name_parse_bundle(const char *s, uint64_t *epoch, uint32_t *first, uint32_t *last);
bool vv_name_parse_parity(const char *s, uint64_t *epoch, uint32_t *rank, uint32_t *ranks);
/* false: it is no label, or not one that vv_name_check_label allows. */
bool vv_name_parse_label(const char *s, uint64_t *epoch, char label[VV_NAME_LABEL_MAX + 1]);
/* A folder's number, or -1. */
int64_t vv_name_parse_folder(const char *s);

#endif
