/* Sets values in the config.json from which a shape is read (synth.h). */
#include "src/convert/synth.h"

bool fr_synth_set(json_t *config, const char *key, size_t value) {
    return json_object_set_new(config, key, json_integer((json_int_t)value)) == 0;
}
