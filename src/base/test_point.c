#include "base/test_point.h"

void (*vv_stage_hook)(const char *name) = NULL;
