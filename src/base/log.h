/* Writes one line per event to stderr, "varve: ..."; by default only warnings and errors. */
#ifndef VV_BASE_LOG_H
#define VV_BASE_LOG_H

enum vv_log_level { VV_LOG_ERROR, VV_LOG_WARN, VV_LOG_INFO, VV_LOG_DEBUG };

void vv_log_set_level(enum vv_log_level level);
void vv_log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void vv_log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
