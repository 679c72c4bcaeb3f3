"""What companies are called: invented names, areas, industries and owners, the same for ever."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sandbox.market import noise
from sandbox.market.universe import BOARDS, Universe

# fmt: off
_FIRST = [
    ("华", "hua"), ("中", "zhong"), ("东", "dong"), ("西", "xi"), ("南", "nan"), ("北", "bei"),
    ("金", "jin"), ("银", "yin"), ("海", "hai"), ("天", "tian"), ("大", "da"), ("新", "xin"),
    ("国", "guo"), ("长", "chang"), ("江", "jiang"), ("河", "he"), ("山", "shan"), ("云", "yun"),
    ("光", "guang"), ("明", "ming"), ("泰", "tai"), ("安", "an"), ("宝", "bao"), ("龙", "long"),
    ("凤", "feng"), ("鹏", "peng"), ("松", "song"), ("柏", "bai"), ("梅", "mei"), ("兰", "lan"),
    ("竹", "zhu"), ("菊", "ju"), ("星", "xing"), ("月", "yue"), ("日", "ri"), ("春", "chun"),
    ("秋", "qiu"), ("远", "yuan"), ("航", "hang"), ("恒", "heng"), ("永", "yong"), ("瑞", "rui"),
    ("祥", "xiang"), ("嘉", "jia"), ("鸿", "hong"), ("博", "bo"), ("卓", "zhuo"), ("盛", "sheng"),
]
_SECOND = [
    ("达", "da"), ("丰", "feng"), ("利", "li"), ("通", "tong"), ("兴", "xing"), ("发", "fa"),
    ("润", "run"), ("源", "yuan"), ("信", "xin"), ("诚", "cheng"), ("德", "de"), ("隆", "long"),
    ("昌", "chang"), ("荣", "rong"), ("和", "he"), ("顺", "shun"), ("康", "kang"), ("宁", "ning"),
    ("力", "li"), ("创", "chuang"), ("联", "lian"), ("合", "he"), ("方", "fang"), ("正", "zheng"),
    ("邦", "bang"), ("维", "wei"), ("科", "ke"), ("奇", "qi"), ("思", "si"), ("益", "yi"),
    ("佳", "jia"), ("美", "mei"), ("胜", "sheng"), ("锐", "rui"), ("捷", "jie"), ("腾", "teng"),
    ("飞", "fei"), ("跃", "yue"), ("升", "sheng"), ("旭", "xu"),
]
_TRADES = [
    ("科技", "ke ji", "软件服务"), ("股份", "gu fen", "综合类"), ("药业", "yao ye", "化学制药"),
    ("电子", "dian zi", "元器件"), ("机械", "ji xie", "专用机械"),
    ("能源", "neng yuan", "火力发电"), ("材料", "cai liao", "化工原料"),
    ("生物", "sheng wu", "生物制药"), ("环保", "huan bao", "环境保护"),
    ("汽车", "qi che", "汽车配件"), ("食品", "shi pin", "食品"), ("银行", "yin hang", "银行"),
    ("证券", "zheng quan", "证券"), ("地产", "di chan", "区域地产"), ("钢铁", "gang tie", "普钢"),
    ("电力", "dian li", "电气设备"), ("智能", "zhi neng", "IT设备"),
    ("光电", "guang dian", "半导体"), ("物流", "wu liu", "仓储物流"),
    ("传媒", "chuan mei", "影视音像"),
]
_AREAS = (
    "北京", "上海", "深圳", "广东", "浙江", "江苏", "山东", "四川", "湖北", "湖南", "福建", "安徽",
    "河南", "河北", "陕西", "辽宁", "重庆", "天津", "江西", "广西", "云南", "贵州", "山西", "吉林",
    "黑龙江", "新疆", "内蒙", "甘肃", "海南", "宁夏", "青海", "西藏",
)
_OWNERS = (
    ("民营企业", 60), ("地方国企", 20), ("中央国企", 10), ("外资企业", 4), ("公众企业", 6),
)
# fmt: on


@dataclass(frozen=True)
class Company:
    name: str
    fullname: str
    enname: str
    cnspell: str
    area: str
    industry: str
    owner: str | None
    ownership: str
    connect: str
    """H or S if Hong Kong investors may buy it, else N."""


def companies(universe: Universe, seed: int) -> list[Company]:
    """One company per stock, in the universe's order. Names repeat as little as they do in life."""
    stocks = np.arange(len(universe))
    drawn = noise.bits(noise.keys(seed, "company", stocks), 0).tolist()
    return [_company(h, int(board)) for h, board in zip(drawn, universe.boards.tolist(), strict=True)]


def _company(h: int, board: int) -> Company:
    h, a = divmod(h, len(_FIRST))
    h, b = divmod(h, len(_SECOND))
    h, c = divmod(h, len(_TRADES))
    h, d = divmod(h, len(_AREAS))
    h, e = divmod(h, 100)
    h, f = divmod(h, 10)
    (first, first_latin), (second, second_latin) = _FIRST[a], _SECOND[b]
    trade, trade_latin, industry = _TRADES[c]
    area = _AREAS[d]
    latin = f"{first_latin}{second_latin} {trade_latin.replace(' ', '')}".title()
    ownership = _ownership(e)
    exchange = BOARDS[board].exchange
    connect = "N" if f < 5 or exchange == "BSE" else ("H" if exchange == "SSE" else "S")
    return Company(
        name=first + second + trade,
        fullname=f"{area}{first}{second}{trade}股份有限公司",
        enname=f"{latin} Co., Ltd.",
        cnspell="".join(part[0] for part in (first_latin, second_latin, *trade_latin.split())),
        area=area,
        industry=industry,
        owner=None if ownership == "公众企业" else f"{first}{second}控股集团有限公司",
        ownership=ownership,
        connect=connect,
    )


def _ownership(draw: int) -> str:
    for name, share in _OWNERS:
        if draw < share:
            return name
        draw -= share
    return _OWNERS[0][0]
