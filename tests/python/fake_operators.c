/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of the fake library (fake_leat.c), which knows no gRPC. */
#include <string.h>

#include "client/leat/leat.h"

static const char kOperators[] =
    "[{\"name\":\"readers.image_folder\",\"doc\":\"files -> encoded, label\","
    "\"inputs\":0,\"outputs\":2,\"random\":false,\"args\":["
    "{\"name\":\"path\",\"type\":\"string\",\"doc\":\"the folder\"},"
    "{\"name\":\"repeat\",\"type\":\"int\",\"default\":1,\"min\":1,"
    "\"max\":1000000000,\"doc\":\"passes\"},"
    "{\"name\":\"hidden\",\"type\":\"bool\",\"default\":false,"
    "\"doc\":\"dots\"}]},"
    "{\"name\":\"readers.fields\",\"doc\":\"a value for each field\","
    "\"inputs\":0,\"outputs\":1,\"outputs_of\":\"fields\",\"random\":false,"
    "\"args\":[{\"name\":\"fields\",\"type\":\"strings\",\"doc\":\"names\"},"
    "{\"name\":\"kinds\",\"type\":\"strings\",\"default\":[],\"choices\":"
    "[\"image\",\"text\"],\"doc\":\"what they are\"}]},"
    "{\"name\":\"decode\",\"doc\":\"encoded -> uint8\",\"inputs\":1,"
    "\"outputs\":1,\"random\":false,\"args\":[{\"name\":\"output\",\"type\":"
    "\"string\",\"default\":\"rgb\",\"choices\":[\"rgb\",\"gray\"],\"doc\":"
    "\"colours\"}]},"
    "{\"name\":\"random_resized_crop\",\"doc\":\"a window\",\"inputs\":1,"
    "\"outputs\":1,\"random\":true,\"args\":[{\"name\":\"size\",\"type\":"
    "\"ints\",\"min\":1,\"max\":65500,\"doc\":\"height, width\"},{\"name\":"
    "\"area\",\"type\":\"floats\",\"default\":[0.08,1.0],\"min\":0.000001,"
    "\"max\":1,\"doc\":\"part\"}]},"
    "{\"name\":\"crop\",\"doc\":\"a window\",\"inputs\":1,\"outputs\":1,"
    "\"random\":false,\"args\":[{\"name\":\"size\",\"type\":\"ints\",\"min\":1,"
    "\"max\":65500,\"doc\":\"height, width\"},{\"name\":\"pos_y\",\"type\":"
    "\"float\",\"default\":0.5,\"per_sample\":true,\"min\":0,\"max\":1,"
    "\"doc\":\"where\"}]},"
    "{\"name\":\"flip\",\"doc\":\"mirrored\",\"inputs\":1,\"outputs\":1,"
    "\"random\":false,\"args\":[{\"name\":\"horizontal\",\"type\":\"bool\","
    "\"default\":true,\"per_sample\":true,\"doc\":\"left and right\"}]},"
    "{\"name\":\"coin_flip\",\"doc\":\"a bool\",\"inputs\":0,\"outputs\":1,"
    "\"random\":true,\"args\":[{\"name\":\"probability\",\"type\":\"float\","
    "\"default\":0.5,\"min\":0,\"max\":1,\"doc\":\"of true\"}]},"
    "{\"name\":\"add\",\"doc\":\"a + b\",\"inputs\":2,\"outputs\":1,"
    "\"random\":false,\"args\":[]},"
    "{\"name\":\"cast\",\"doc\":\"refused by the fake's check\",\"inputs\":1,"
    "\"outputs\":1,\"random\":false,\"args\":[{\"name\":\"dtype\",\"type\":"
    "\"string\",\"doc\":\"type\"}]}]";

char* leat_operators_json(void) { return strdup(kOperators); }

void leat_log_grpc(void) {}
