"""
Click-through-rate prediction: xDeepFM (linear + CIN + DNN) whose behaviour sequences are pooled
with the local activation unit of DIN.
"""

from collections import OrderedDict, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class SparseFeat(
    namedtuple("SparseFeat", ["name", "vocabulary_size", "embedding_dim", "embedding_name"])
):
    __slots__ = ()

    def __new__(cls, name, vocabulary_size, embedding_dim=4, embedding_name=None):
        if embedding_name is None:
            embedding_name = name
        return super(SparseFeat, cls).__new__(
            cls, name, vocabulary_size, embedding_dim, embedding_name
        )


class VarLenSparseFeat(namedtuple("VarLenSparseFeat", ["sparsefeat", "maxlen", "target"])):
    __slots__ = ()

    @property
    def name(self):
        return self.sparsefeat.name

    @property
    def vocabulary_size(self):
        return self.sparsefeat.vocabulary_size

    @property
    def embedding_dim(self):
        return self.sparsefeat.embedding_dim

    @property
    def embedding_name(self):
        return self.sparsefeat.embedding_name


class DenseFeat(namedtuple("DenseFeat", ["name", "dimension"])):
    __slots__ = ()


def default_features(n_user=1000, n_item=5000, n_cate=100, n_hour=24, embedding_dim=8, maxlen=50):
    return [
        SparseFeat("user", n_user, embedding_dim),
        SparseFeat("item", n_item, embedding_dim),
        SparseFeat("cate", n_cate, embedding_dim),
        SparseFeat("hour", n_hour, embedding_dim),
        DenseFeat("price", 1),
        DenseFeat("stat", 3),
        VarLenSparseFeat(SparseFeat("hist_item", n_item, embedding_dim, "item"), maxlen, "item"),
        VarLenSparseFeat(SparseFeat("hist_cate", n_cate, embedding_dim, "cate"), maxlen, "cate"),
    ]


def build_input_features(feature_columns):
    features = OrderedDict()
    start = 0
    for feat in feature_columns:
        if feat.name in features:
            continue
        if isinstance(feat, SparseFeat):
            features[feat.name] = (start, start + 1)
            start += 1
        elif isinstance(feat, DenseFeat):
            features[feat.name] = (start, start + feat.dimension)
            start += feat.dimension
        elif isinstance(feat, VarLenSparseFeat):
            features[feat.name] = (start, start + feat.maxlen)
            start += feat.maxlen
        else:
            raise TypeError("Invalid feature column type,got", type(feat))
    return features


def create_embedding_matrix(feature_columns, init_std=0.0001, linear=False):
    embedding_dict = nn.ModuleDict()
    for feat in feature_columns:
        if isinstance(feat, DenseFeat) or feat.embedding_name in embedding_dict:
            continue
        embedding_dict[feat.embedding_name] = nn.Embedding(
            feat.vocabulary_size, 1 if linear else feat.embedding_dim, padding_idx=0
        )
    for tensor in embedding_dict.values():
        nn.init.normal_(tensor.weight, mean=0, std=init_std)
    return embedding_dict


class Dice(nn.Module):
    """Data adaptive activation of DIN; the input is (B, D) or (B, T, D)."""

    def __init__(self, emb_size, epsilon=1e-8):
        super(Dice, self).__init__()
        self.bn = nn.BatchNorm1d(emb_size, eps=epsilon)
        self.sigmoid = nn.Sigmoid()
        self.alpha = nn.Parameter(torch.zeros((emb_size,)))

    def forward(self, x):
        assert x.dim() in (2, 3)
        if x.dim() == 2:
            x_p = self.sigmoid(self.bn(x))
            out = self.alpha * (1 - x_p) * x + x_p * x
        else:
            x = torch.transpose(x, 1, 2)
            x_p = self.sigmoid(self.bn(x))
            out = self.alpha.view(-1, 1) * (1 - x_p) * x + x_p * x
            out = torch.transpose(out, 1, 2)
        return out


def activation_layer(act_name, hidden_size=None):
    if isinstance(act_name, str):
        if act_name.lower() == "linear":
            return nn.Identity()
        elif act_name.lower() == "relu":
            return nn.ReLU(inplace=True)
        elif act_name.lower() == "dice":
            assert hidden_size
            return Dice(hidden_size)
        elif act_name.lower() == "prelu":
            return nn.PReLU()
    elif issubclass(act_name, nn.Module):
        return act_name()
    raise NotImplementedError


class DNN(nn.Module):
    def __init__(
        self,
        inputs_dim,
        hidden_units,
        activation="relu",
        dropout_rate=0,
        use_bn=False,
        init_std=0.1,
    ):
        super(DNN, self).__init__()
        if len(hidden_units) == 0:
            raise ValueError("hidden_units is empty!!")
        self.dropout = nn.Dropout(dropout_rate)
        self.use_bn = use_bn
        hidden_units = [inputs_dim] + list(hidden_units)
        self.linears = nn.ModuleList(
            [nn.Linear(hidden_units[i], hidden_units[i + 1]) for i in range(len(hidden_units) - 1)]
        )
        if self.use_bn:
            self.bn = nn.ModuleList(
                [nn.BatchNorm1d(hidden_units[i + 1]) for i in range(len(hidden_units) - 1)]
            )
        self.activation_layers = nn.ModuleList(
            [
                activation_layer(activation, hidden_units[i + 1])
                for i in range(len(hidden_units) - 1)
            ]
        )
        for name, tensor in self.linears.named_parameters():
            if "weight" in name:
                nn.init.normal_(tensor, mean=0, std=init_std)

    def forward(self, inputs):
        deep_input = inputs
        for i in range(len(self.linears)):
            fc = self.linears[i](deep_input)
            if self.use_bn:
                fc = self.bn[i](fc)
            fc = self.activation_layers[i](fc)
            deep_input = self.dropout(fc)
        return deep_input


class AttentionSequencePoolingLayer(nn.Module):
    def __init__(
        self,
        att_hidden_units=(80, 40),
        att_activation="dice",
        weight_normalization=False,
        embedding_dim=4,
    ):
        super(AttentionSequencePoolingLayer, self).__init__()
        self.weight_normalization = weight_normalization
        self.dnn = DNN(4 * embedding_dim, att_hidden_units, activation=att_activation)
        self.dense = nn.Linear(att_hidden_units[-1], 1)

    def forward(self, query, keys, mask):
        """query: (B, 1, E), keys: (B, T, E), mask: (B, T) -> (B, 1, E)"""
        queries = query.expand(-1, keys.size(1), -1)
        attention_input = torch.cat([queries, keys, queries - keys, queries * keys], dim=-1)
        outputs = self.dense(self.dnn(attention_input)).transpose(1, 2)
        if self.weight_normalization:
            paddings = torch.ones_like(outputs) * (-(2**32) + 1)
        else:
            paddings = torch.zeros_like(outputs)
        outputs = torch.where(mask.unsqueeze(1), outputs, paddings)
        if self.weight_normalization:
            outputs = F.softmax(outputs, dim=-1)
        return torch.matmul(outputs, keys)


class CIN(nn.Module):
    """Compressed Interaction Network, (B, F, D) -> (B, featuremap_num)"""

    def __init__(self, field_size, layer_size=(128, 128), activation="relu", split_half=True):
        super(CIN, self).__init__()
        self.layer_size = layer_size
        self.field_nums = [field_size]
        self.split_half = split_half
        self.activation = activation_layer(activation)
        self.conv1ds = nn.ModuleList()
        for i, size in enumerate(self.layer_size):
            self.conv1ds.append(nn.Conv1d(self.field_nums[-1] * self.field_nums[0], size, 1))
            if self.split_half:
                if i != len(self.layer_size) - 1 and size % 2 > 0:
                    raise ValueError(
                        "layer_size must be even except for the last layer when split_half=True"
                    )
                self.field_nums.append(size // 2)
            else:
                self.field_nums.append(size)

    def forward(self, inputs):
        if len(inputs.shape) != 3:
            raise ValueError(
                "Unexpected inputs dimensions %d, expect to be 3 dimensions" % (len(inputs.shape))
            )
        batch_size, dim = inputs.shape[0], inputs.shape[-1]
        hidden_nn_layers = [inputs]
        final_result = []
        for i, size in enumerate(self.layer_size):
            x = torch.einsum("bhd,bmd->bhmd", hidden_nn_layers[-1], hidden_nn_layers[0])
            x = x.reshape(
                batch_size, hidden_nn_layers[-1].shape[1] * hidden_nn_layers[0].shape[1], dim
            )
            curr_out = self.activation(self.conv1ds[i](x))
            if self.split_half and i != len(self.layer_size) - 1:
                next_hidden, direct_connect = torch.split(curr_out, 2 * [size // 2], 1)
            else:
                direct_connect, next_hidden = curr_out, curr_out
            final_result.append(direct_connect)
            hidden_nn_layers.append(next_hidden)
        return torch.sum(torch.cat(final_result, dim=1), -1)


class xDeepInterest(nn.Module):
    def __init__(
        self,
        feature_columns,
        dnn_hidden_units=(256, 128),
        cin_layer_size=(128, 128),
        att_hidden_units=(64, 16),
        dnn_dropout=0.2,
        dnn_use_bn=True,
        l2_reg_embedding=1e-5,
        l2_reg_cin=1e-5,
        pos_weight=None,
        init_std=0.0001,
    ):
        super(xDeepInterest, self).__init__()
        self.feature_index = build_input_features(feature_columns)
        self.sparse = [f for f in feature_columns if isinstance(f, SparseFeat)]
        self.dense = [f for f in feature_columns if isinstance(f, DenseFeat)]
        self.varlen = [f for f in feature_columns if isinstance(f, VarLenSparseFeat)]
        dims = set(f.embedding_dim for f in self.sparse + self.varlen)
        assert len(dims) == 1, "CIN needs the same embedding size in every field"
        dim = dims.pop()

        self.embedding_dict = create_embedding_matrix(feature_columns, init_std)
        self.linear_embedding_dict = create_embedding_matrix(feature_columns, init_std, linear=True)
        dense_dim = sum(f.dimension for f in self.dense)
        self.linear_weight = nn.Parameter(torch.Tensor(dense_dim, 1))
        nn.init.normal_(self.linear_weight, mean=0, std=init_std)
        self.attention = nn.ModuleDict(
            {
                f.name: AttentionSequencePoolingLayer(att_hidden_units, embedding_dim=dim)
                for f in self.varlen
            }
        )
        n_fields = len(self.sparse) + len(self.varlen)
        self.cin = CIN(n_fields, cin_layer_size)
        self.cin_linear = nn.Linear(
            sum(cin_layer_size[:-1]) // 2 + cin_layer_size[-1], 1, bias=False
        )
        self.dnn = DNN(
            n_fields * dim + dense_dim, dnn_hidden_units, "prelu", dnn_dropout, dnn_use_bn
        )
        self.dnn_linear = nn.Linear(dnn_hidden_units[-1], 1, bias=False)
        self.bias = nn.Parameter(torch.zeros((1,)))
        self.pos_weight = pos_weight
        self.regularization_weight = []
        self.add_regularization_weight(self.embedding_dict.parameters(), l2_reg_embedding)
        self.add_regularization_weight(
            [p for n, p in self.cin.named_parameters() if "weight" in n], l2_reg_cin
        )

    def add_regularization_weight(self, weight_list, l2):
        self.regularization_weight.append((list(weight_list), l2))

    def get_regularization_loss(self):
        total = torch.zeros_like(self.bias)
        for weight_list, l2 in self.regularization_weight:
            for w in weight_list:
                total = total + torch.sum(l2 * torch.square(w))
        return total.squeeze()

    def column(self, X, name):
        start, end = self.feature_index[name]
        return X[:, start:end]

    def forward(self, X, y=None):
        """X: (B, total) one matrix of all the columns, ids stored as floats; y: (B,) clicks"""
        fields, linear_logit = [], 0
        for feat in self.sparse:
            ids = self.column(X, feat.name).long()
            fields.append(self.embedding_dict[feat.embedding_name](ids))
            linear_logit = linear_logit + self.linear_embedding_dict[feat.embedding_name](
                ids
            ).squeeze(-1)
        queries = {feat.name: emb for feat, emb in zip(self.sparse, fields)}
        for feat in self.varlen:
            ids = self.column(X, feat.name).long()
            mask = ids != 0
            keys = self.embedding_dict[feat.embedding_name](ids)
            fields.append(self.attention[feat.name](queries[feat.target], keys, mask))
            lin = self.linear_embedding_dict[feat.embedding_name](ids).squeeze(-1)
            linear_logit = linear_logit + lin.sum(-1, keepdim=True) / (
                mask.sum(-1, keepdim=True) + 1e-8
            )
        dense = torch.cat([self.column(X, feat.name) for feat in self.dense], dim=-1)
        dense = torch.sign(dense) * torch.log1p(torch.abs(dense))
        linear_logit = linear_logit + dense.matmul(self.linear_weight)

        emb = torch.cat(fields, dim=1)
        logit = linear_logit + self.cin_linear(self.cin(emb)) + self.bias
        logit = logit + self.dnn_linear(
            self.dnn(torch.cat([emb.flatten(start_dim=1), dense], dim=-1))
        )
        logit = logit.squeeze(-1)
        y_pred = torch.sigmoid(logit)
        if y is None:
            return y_pred
        weight = (
            None
            if self.pos_weight is None
            else torch.where(y > 0.5, torch.full_like(y, self.pos_weight), torch.ones_like(y))
        )
        loss = F.binary_cross_entropy(y_pred, y, weight=weight, reduction="sum") / y.shape[0]
        reg_loss = self.get_regularization_loss()
        return {"y_pred": y_pred, "loss": loss, "reg_loss": reg_loss, "total_loss": loss + reg_loss}
